// SPDX-License-Identifier: Apache-2.0
// Work that two processors share.
#pragma once

#include <cstddef>
#include <functional>

namespace kmm::sys {

/// Processors that this process may run on, as its affinity says; at least 1.
[[nodiscard]] std::size_t usable_processors() noexcept;

/// Calls `work` in this thread and in a second one at the same time, and returns when both calls have ended. If no
/// thread can be started, it is called in this one alone. What a call throws is thrown here, after both have ended.
void run_in_two_threads(const std::function<void()>& work);

/// Gives the system what was freed of the heap. What a thread has freed is not used again by others, so a process that
/// had two threads for a while would hold it for nothing. O(heap).
void return_freed_memory() noexcept;

}  // namespace kmm::sys
