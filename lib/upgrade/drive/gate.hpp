// SPDX-License-Identifier: Apache-2.0
// What keeps a node from being begun though it is its turn: the time of day, and nodes that others made unavailable.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "sys/clock.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::drive {

/// How a walk learns the time of day and tells what it waits for.
struct Pace {
    std::function<int(std::int64_t unix_seconds)>
        minute_of_day;  ///< default: that of the run's time zone, sys::minute_of_day_in
    std::function<void(const std::string& text)> notice;          ///< empty: nobody listens
};

/// Why a node may not begin now.
struct Hold {
    std::string code;     ///< "window" or "max-unavailable"
    std::string message;
    std::chrono::milliseconds look_again{};
};

/// Whether `node` may be begun while those of `busy` are in flight. Nodes that are not ready or
/// cordoned (Actor::unavailable) count as in flight, if the run asks for that; `node` itself does not count twice.
/// Errors: those of the store.
[[nodiscard]] std::optional<Hold> hold_of(Actor& actor, const sys::Clock& clock, const Pace& pace,
                                          const upgrade::Header& run, const std::string& node,
                                          const std::set<std::string>& busy);

}  // namespace kmm::drive
