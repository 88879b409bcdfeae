// SPDX-License-Identifier: Apache-2.0
#include "registry/threaded_source.hpp"

namespace kmm::registry {

ThreadedSource::ThreadedSource(ByteSource& input) : input_(input), thread_([this] { work(); }) {}

ThreadedSource::~ThreadedSource() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void ThreadedSource::work() {
    try {
        while (true) {
            const std::string_view piece = input_.next();
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || filled_ - taken_ < k_slots; });
            if (stopping_) {
                return;
            }
            if (piece.empty()) {
                ended_ = true;
                changed_.notify_all();
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
    changed_.wait(lock, [&] { return ended_ || filled_ != taken_; });
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
