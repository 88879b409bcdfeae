// SPDX-License-Identifier: Apache-2.0
// From one thread to another, with as much on the way as is agreed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace kmm::base {

/// A queue between threads that holds at most `max` values. All members are thread safe.
template <typename T>
class BoundedQueue {
public:
    explicit BoundedQueue(std::size_t max) : max_(max) {}

    /// Waits for room. False, and the value is dropped, once the queue is abandoned or finished.
    bool push(T value) {
        std::unique_lock lock(mutex_);
        has_room_.wait(lock, [&] { return values_.size() < max_ || ended_; });
        if (ended_) { return false; }
        values_.push_back(std::move(value));
        lock.unlock();
        has_value_.notify_one();
        return true;
    }

    /// Waits for a value. nullopt once there is none and none will come.
    std::optional<T> pop() {
        std::unique_lock lock(mutex_);
        has_value_.wait(lock, [&] { return !values_.empty() || ended_; });
        if (values_.empty()) { return std::nullopt; }
        std::optional<T> value(std::move(values_.front()));
        values_.pop_front();
        lock.unlock();
        has_room_.notify_one();
        return value;
    }

    /// No more values come; those that are there can still be taken.
    void finish() {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        has_value_.notify_all();
        has_room_.notify_all();
    }

    /// The values that are there are dropped, and no more come.
    void abandon() {
        const std::lock_guard lock(mutex_);
        values_.clear();
        ended_ = true;
        has_value_.notify_all();
        has_room_.notify_all();
    }

private:
    const std::size_t max_;
    std::mutex mutex_;
    std::condition_variable has_room_, has_value_;
    std::deque<T> values_;
    bool ended_ = false;
};

}  // namespace kmm::base
