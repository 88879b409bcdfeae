// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/threaded_source.hpp"

#include <algorithm>
#include <utility>

namespace kmm::registry {

ThreadedSource::ThreadedSource(ByteSource& input, std::function<void(std::string_view)> also)
    : input_(input), also_(std::move(also)), thread_([this] { work(); }) {}

ThreadedSource::~ThreadedSource() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

bool ThreadedSource::full() const { return filled_ - (also_ ? std::min(taken_, done_) : taken_) == k_slots; }

/// What a thread does that cannot go on: the next part of the work beside, if nobody is at it.
void ThreadedSource::wait_or_do(std::unique_lock<std::mutex>& lock) {
    if (!behind() || doing_) {
        changed_.wait(lock);
        return;
    }
    const Slot& slot = slots_[done_ % k_slots];
    doing_ = true;
    lock.unlock();  // nobody fills a slot again before this is done
    also_({slot.bytes.data(), slot.size});
    lock.lock();
    doing_ = false;
    ++done_;
    changed_.notify_all();
}

void ThreadedSource::work() {
    try {
        while (true) {
            const std::string_view piece = input_.next();
            std::unique_lock lock(mutex_);
            ended_ = piece.empty();
            if (ended_) {
                changed_.notify_all();
            }
            while (!stopping_ && (ended_ ? behind() : full())) {
                wait_or_do(lock);
            }
            if (stopping_ || ended_) {
                return;
            }
            Slot& slot = slots_[filled_ % k_slots];
            lock.unlock();  // the reader does not look at a slot that is not filled
            slot.size = piece.size();
            if (!input_.swap_buffer(slot.bytes)) {
                slot.bytes.assign(piece.begin(), piece.end());
            }
            lock.lock();
            ++filled_;
            changed_.notify_all();
        }
    } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        ended_ = true;
        changed_.notify_all();
    }
}

std::string_view ThreadedSource::next() {
    std::unique_lock lock(mutex_);
    if (reading_) {
        reading_ = false;
        ++taken_;
        changed_.notify_all();
    }
    while (filled_ == taken_ && (!ended_ || (behind() && !failure_))) {
        wait_or_do(lock);
    }
    if (filled_ == taken_) {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return {};
    }
    reading_ = true;
    const Slot& slot = slots_[taken_ % k_slots];
    return {slot.bytes.data(), slot.size};
}

}  // namespace kmm::registry
