// SPDX-License-Identifier: Apache-2.0
// Work that two processors share.
#pragma once

#include <cstddef>
#include <functional>

#include "base/shared_work.hpp"

namespace kmm::sys {

/// Processors that this process may run on, as its affinity says; at least 1.
[[nodiscard]] std::size_t usable_processors() noexcept;

/// Calls `work` in this thread and in a second one at the same time, and returns when both calls have ended. The
/// second has a stack of 8 MiB at least, as this one has by default. If no thread can be started, `work` is called in
/// this one alone. What a call throws is thrown here, after both have ended.
void run_in_two_threads(const std::function<void()>& work);

/// How the processors of this process share work: run_in_two_threads; empty if it may use one alone.
[[nodiscard]] base::RunTogether run_together();

/// Gives the system what was freed of the heap. What a thread has freed is not used again by others, so a process that
/// had two threads for a while would hold it for nothing. O(heap).
void return_freed_memory() noexcept;

}  // namespace kmm::sys
