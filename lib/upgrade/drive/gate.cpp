// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive/gate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/engine/pace.hpp"

namespace kmm::drive {
namespace {

constexpr std::chrono::seconds k_look_at_time{20}, k_look_at_nodes{10};

std::optional<Hold> hold_of_window(const sys::Clock& clock, const Pace& pace, const upgrade::Options& options) {
    const auto window = upgrade::parse_window(options.between);
    if (!window)
        throw Error(Exit::config, "bad-value", fmt::format("the record has the window \"{}\"", options.between));
    const int left = window->minutes_until(pace.minute_of_day(clock.now_unix()));
    if (left == 0) return std::nullopt;
    Hold hold;
    hold.code = "window";
    hold.message = fmt::format("no node begins before {}{}: --between {}", upgrade::clock_time(window->from),
                               options.time_zone.empty() ? "" : " " + options.time_zone, options.between);
    hold.look_again = k_look_at_time;
    return hold;
}

}  // namespace

std::optional<Hold> hold_of(Actor& actor, const sys::Clock& clock, const Pace& pace, const upgrade::Header& run,
                            const std::string& node, const std::set<std::string>& busy) {
    if (!run.options.between.empty())
        if (auto hold = hold_of_window(clock, pace, run.options)) return hold;
    if (!run.options.count_unavailable) return std::nullopt;
    std::vector<std::string> others;
    for (const auto& [name, why] : actor.unavailable())
        if (name != node && !busy.contains(name)) others.push_back(fmt::format("{} is {}", name, why));
    if (static_cast<std::int64_t>(busy.size() + others.size()) < run.options.max_unavailable || others.empty())
        return std::nullopt;
    Hold hold;
    hold.code = "max-unavailable";
    hold.message =
        fmt::format("at most {} may be unavailable, and {}", run.options.max_unavailable, base::join(others, ", "));
    hold.look_again = k_look_at_nodes;
    return hold;
}

}  // namespace kmm::drive
