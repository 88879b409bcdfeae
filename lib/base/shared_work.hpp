// SPDX-License-Identifier: Apache-2.0
// Pieces of work that do not need each other, for the threads of the caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>

namespace kmm::base {

/// Calls `work` once or several times, at the same time, and returns when the calls have ended.
using RunTogether = std::function<void(const std::function<void()>& work)>;

/// Calls `work(i)` once for each i below `count`, in the threads of `run`; in the thread of the caller, in order, if
/// `run` is empty or there is only one. Numbers are handed out in order. After a call has thrown none is handed out any
/// more, and what the lowest number threw is thrown: what calls in order would throw.
template <typename Work>
void share_work(std::size_t count, const RunTogether& run, const Work& work) {
    if (!run || count < 2) {
        for (std::size_t i = 0; i < count; ++i) { work(i); }
        return;
    }
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> failed = false;
    std::mutex mutex;
    std::size_t failed_at = count;
    std::exception_ptr failure;
    run([&] {
        // A number that was taken is worked on: the lowest that fails must not depend on the threads.
        while (!failed) {
            const std::size_t i = next++;
            if (i >= count) { return; }
            try {
                work(i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (i < failed_at) {
                    failed_at = i;
                    failure = std::current_exception();
                }
                failed = true;
            }
        }
    });
    if (failure) { std::rethrow_exception(failure); }
}

}  // namespace kmm::base
