// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/watchdog.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::drive {

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

bool Watchdog::Watch::end() {
    const auto number = std::exchange(number_, 0);
    return number != 0 && watchdog_.end(number);
}

Watchdog::Watch Watchdog::watch(std::chrono::milliseconds patience, std::function<void()> say) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    Entry entry;
    entry.due = std::chrono::steady_clock::now() + patience;
    entry.say = std::move(say);
    entries_.emplace(++last_, std::move(entry));
    changed_.notify_all();
    return Watch(*this, last_);
}

bool Watchdog::end(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    const auto entry = entries_.find(number);
    changed_.wait(lock, [&] { return !entry->second.is_saying; });
    const bool was_said = entry->second.is_said;
    entries_.erase(entry);
    return was_said;
}

void Watchdog::run() {
    std::unique_lock lock(mutex_);
    while (!is_stopping_) {
        auto next = entries_.end();
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
            if (!entry->second.is_said && (next == entries_.end() || entry->second.due < next->second.due))
                next = entry;
        if (next == entries_.end()) {
            changed_.wait(lock);
            continue;
        }
        const auto due = next->second.due;
        if (std::chrono::steady_clock::now() < due) {
            changed_.wait_until(lock, due);
            continue;
        }
        auto& entry = next->second;  // stays: whoever ends it waits for is_saying
        entry.is_saying = true;
        lock.unlock();
        try {
            entry.say();
        } catch (...) {
            // The record cannot be written: the step says so itself, at its next word.
        }
        lock.lock();
        entry.is_saying = false;
        entry.is_said = true;
        changed_.notify_all();
    }
}

std::string Silence::text() const {
    const auto clock = [](std::int64_t time) { return base::format_rfc3339(time).substr(11, 8); };
    return fmt::format("no answer to {} since {}, waiting until {}", what, clock(since), clock(until));
}

value::Node Silence::facts() const {
    return value::Node::mapping(
        {{"waitsFor", what}, {"waitsSince", base::format_rfc3339(since)}, {"waitsUntil", base::format_rfc3339(until)}});
}

Silence silence_from_now(const sys::Clock& clock, const std::string& what, std::chrono::milliseconds patience) {
    const auto now = clock.now_unix();
    return {what, now, now + std::chrono::duration_cast<std::chrono::seconds>(patience).count()};
}

}  // namespace kmm::drive
