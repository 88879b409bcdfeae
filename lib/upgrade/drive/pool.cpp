// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive/pool.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <utility>

namespace kmm::drive {

Pool::~Pool() {
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
}

bool Pool::try_run(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (idle_ <= tasks_.size()) {
        if (threads_.size() >= limit_) return false;
        threads_.reserve(threads_.size() + 1);
        try {
            threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            return false;
        }
        ++idle_;
    }
    tasks_.push_back(std::move(task));
    changed_.notify_one();
    return true;
}

std::size_t Pool::threads() const {
    const std::lock_guard lock(mutex_);
    return threads_.size();
}

void Pool::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return !tasks_.empty() || is_ending_; });
        if (tasks_.empty()) return;
        auto task = std::move(tasks_.front());
        tasks_.pop_front();
        --idle_;
        lock.unlock();
        task();
        task = nullptr;  // what it holds ends outside of the mutex
        lock.lock();
        ++idle_;
        if (!on_idle_) continue;
        lock.unlock();
        on_idle_();
        lock.lock();
    }
}

namespace {

/// Nodes that are asked at the same time: each by a thread that mostly waits.
constexpr std::size_t k_at_once = 4;

}  // namespace

void for_each_at_once(std::size_t count, const std::function<void(std::size_t)>& act) {
    std::vector<std::exception_ptr> crashes(count);
    std::atomic<std::size_t> turn{0};
    std::atomic<bool> has_crashed{false};
    const auto work = [&] {
        for (std::size_t index = turn++; index < count && !has_crashed; index = turn++) {
            try {
                act(index);
            } catch (...) {
                crashes[index] = std::current_exception();
                has_crashed = true;
            }
        }
    };
    {
        std::vector<std::jthread> threads;
        try {
            for (std::size_t started = 1; started < std::min(k_at_once, count); ++started) threads.emplace_back(work);
        } catch (const std::system_error&) {
            // No thread can be started: those there are do it all.
        }
        work();
    }
    for (const auto& crash : crashes)
        if (crash) std::rethrow_exception(crash);
}

}  // namespace kmm::drive
