// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/layer_feed.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kmm::registry {

LayerFeed::LayerFeed(std::size_t count, Fetch fetch, std::function<void()> stop)
    : fetch_(std::move(fetch)), stop_(std::move(stop)), thread_([this, count] { work(count); }) {}

LayerFeed::~LayerFeed() {
    if (stop_) {
        stop_();
    }
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    room_.notify_all();
    thread_.join();
}

void LayerFeed::work(std::size_t count) {
    for (std::size_t index = 0; index < count; ++index) {
        std::exception_ptr failure;
        try {
            fetch_(index, *this);
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        add_locked({.kind = failure ? Kind::failed : Kind::proven, .failure = failure});
        if (failure) {
            return;
        }
    }
}

void LayerFeed::add_locked(Event event) {
    events_.push_back(std::move(event));
    arrived_.notify_one();
}

void LayerFeed::put(std::string_view bytes) {
    while (!bytes.empty()) {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] { return stopping_ || waiting_ < k_ahead; });
        if (stopping_) {
            throw Error(Exit::interrupted, "interrupted", "the pull was given up");
        }
        if (events_.empty() || events_.back().kind != Kind::bytes || events_.back().bytes.size() == k_piece) {
            Event event;
            if (!spare_.empty()) {
                event.bytes.swap(spare_.back());
                spare_.pop_back();
            }
            event.bytes.clear();
            event.bytes.reserve(k_piece);
            events_.push_back(std::move(event));
        }
        std::vector<char>& piece = events_.back().bytes;
        const std::size_t some = std::min(bytes.size(), k_piece - piece.size());
        piece.insert(piece.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(some));
        waiting_ += some;
        bytes.remove_prefix(some);
        if (piece.size() == k_piece) {
            arrived_.notify_one();
        }
    }
}

/// What the reader has not seen is dropped; what it has is withdrawn.
void LayerFeed::restart() {
    const std::lock_guard lock(mutex_);
    while (!events_.empty() && events_.back().kind == Kind::bytes) {
        waiting_ -= events_.back().bytes.size();
        events_.pop_back();
    }
    // With a proven layer before it the reader is not at this one yet; withdrawn once is enough.
    if (events_.empty() && taken_) {
        add_locked({.kind = Kind::withdrawn});
    }
    room_.notify_one();
}

/// A piece that is still growing is left alone: few large ones cost less than many small ones.
bool LayerFeed::ready() const {
    return !events_.empty() &&
           (events_.size() > 1 || events_.front().kind != Kind::bytes || events_.front().bytes.size() == k_piece);
}

std::string_view LayerFeed::next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return ready(); });
    Event& event = events_.front();
    switch (event.kind) {
        case Kind::failed: std::rethrow_exception(event.failure);
        case Kind::proven: return {};
        case Kind::withdrawn:
            events_.pop_front();
            taken_ = false;
            withdrawn_ = true;
            throw Withdrawn{};
        case Kind::bytes: break;
    }
    taken_ = true;
    waiting_ -= event.bytes.size();
    current_.swap(event.bytes);
    if (event.bytes.capacity() != 0) {
        spare_.push_back(std::move(event.bytes));
    }
    events_.pop_front();
    room_.notify_one();
    return {current_.data(), current_.size()};
}

bool LayerFeed::settle() {
    try {
        while (!withdrawn_ && !next().empty()) {
        }
    } catch (const Withdrawn&) {
    }
    const std::lock_guard lock(mutex_);
    if (withdrawn_) {
        withdrawn_ = false;
        return false;
    }
    events_.pop_front();
    taken_ = false;
    return true;
}

}  // namespace kmm::registry
