// SPDX-License-Identifier: Apache-2.0
// Saying that something takes long, while it takes long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "sys/clock.hpp"
#include "value/node.hpp"

namespace kmm::drive {

/// How long a node may take to say how it is before people are told, and how long a worker may take that does
/// something: it pulls images.
inline constexpr std::chrono::milliseconds k_silence{5'000}, k_silence_of_work{30'000};

/// One thread, started when it is first needed, that says a word for each of what is under way for too long. Thread
/// safe.
class Watchdog {
public:
    Watchdog() = default;
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// One thing under way; its end is the end of this object. The Watchdog must outlive it.
    class Watch {
    public:
        Watch(Watchdog& watchdog, std::uint64_t number) : watchdog_(watchdog), number_(number) {}
        ~Watch() { static_cast<void>(end()); }
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        /// True if the word was said. It is not said, nor being said, any more when this returns.
        bool end();

    private:
        Watchdog& watchdog_;
        std::uint64_t number_;  ///< 0: ended
    };

    /// `say` is called once, from the thread, if the result lives for longer than `patience`. What it throws is
    /// forgotten: a word is worth less than what is under way.
    [[nodiscard]] Watch watch(std::chrono::milliseconds patience, std::function<void()> say);

private:
    struct Entry {
        std::chrono::steady_clock::time_point due;
        std::function<void()> say;
        bool is_saying = false, is_said = false;
    };
    void run();
    bool end(std::uint64_t number);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::uint64_t, Entry> entries_;
    std::uint64_t last_ = 0;
    bool is_stopping_ = false;
    std::thread thread_;
};

/// What people and scripts are told of a node that does not answer to `what`. `since` and `until` are seconds since
/// 1970.
struct Silence {
    std::string what;
    std::int64_t since = 0, until = 0;
    /// "no answer to status since 10:41:07, waiting until 10:51:07".
    [[nodiscard]] std::string text() const;
    /// {"waitsFor":"status","waitsSince":TIME,"waitsUntil":TIME}.
    [[nodiscard]] value::Node facts() const;
};

/// A silence that begins now and is borne for `patience`.
[[nodiscard]] Silence silence_from_now(const sys::Clock& clock, const std::string& what,
                                       std::chrono::milliseconds patience);

}  // namespace kmm::drive
