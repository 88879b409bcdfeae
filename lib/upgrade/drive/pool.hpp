// SPDX-License-Identifier: Apache-2.0
// A bounded number of threads that carry out what they are given.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kmm::drive {

/// Threads are started as they are needed and end with the pool. Thread safe.
class Pool {
public:
    /// `limit`: threads at most, at least 1. `on_idle`: called by a thread that has carried out a task, once try_run
    /// would give it the next one; must not throw.
    explicit Pool(std::size_t limit, std::function<void()> on_idle = {})
        : limit_(limit == 0 ? 1 : limit), on_idle_(std::move(on_idle)) {}
    /// Waits for every task that was taken.
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// True if `task` will be carried out by a thread that has nothing else to do. False, and nothing happens, if all
    /// `limit` threads are busy, or the system gives no other one. `task` must not throw.
    [[nodiscard]] bool try_run(std::function<void()> task);
    /// Threads that were started so far.
    [[nodiscard]] std::size_t threads() const;

private:
    void work();
    const std::size_t limit_;
    const std::function<void()> on_idle_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    std::size_t idle_ = 0;  ///< threads that wait for a task; those of tasks_ are not yet subtracted
    bool is_ending_ = false;
    std::vector<std::thread> threads_;
};

/// Calls `act` with every number below `count`, a few at once; once one has thrown no further ones are begun. Rethrows
/// the first of what they throw, after all have ended.
void for_each_at_once(std::size_t count, const std::function<void(std::size_t)>& act);

}  // namespace kmm::drive
