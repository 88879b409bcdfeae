// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/readiness.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/step_runner.hpp"

namespace kmm::drive {

using upgrade::Event;

namespace {

constexpr const char* k_unready = "node-not-ready";
constexpr std::chrono::milliseconds k_ready_patience{120'000};

Event made_event(const Recorder& recorder, const std::string& node, std::string state, const std::string& problem,
                 const std::string& remedy) {
    auto event = node_event(recorder, upgrade::EventKind::observed, node, "", std::move(state));
    event.reason = k_unready;
    event.message = problem + ", after it was done";
    event.facts.set("hint", fmt::format("{}; then kmm-upgrade retry {}", remedy, node));
    return event;
}

}  // namespace

Event unready_event(const Recorder& recorder, const std::string& node, std::string state, const std::string& problem) {
    return made_event(recorder, node, std::move(state), problem,
                      fmt::format("kubectl describe node {}; kubectl get pods -n kube-system -o wide", node));
}

Event silent_event(const Recorder& recorder, const std::string& node, std::string state) {
    auto event = made_event(recorder, node, std::move(state), fmt::format("node {} gives no answer", node),
                            "see whether it is up and can be reached");
    event.facts.set("currentKnown", false);
    return event;
}

bool is_unready(const Event& event) { return event.reason == k_unready; }

std::vector<Event> find_when_ready(sys::Clock& clock, Recorder& recorder, const std::function<bool()>& interrupted,
                                   const std::function<std::vector<Event>()>& find,
                                   const std::function<bool(const Event&)>& may_pass) {
    const Deadline deadline(
        clock, std::min(k_ready_patience, std::chrono::milliseconds(recorder.header().options.node_timeout_ms)));
    std::vector<Event> events;
    const auto lacks = [&] {
        events = find();
        const bool is_worth_waiting = std::all_of(events.begin(), events.end(), may_pass);
        return events.empty() || !is_worth_waiting ? std::string() : events.front().message;
    };
    const Say say = [&](const std::string& text) { tell(recorder, events.front().node, text); };
    try {
        await_clear(clock, deadline, interrupted, "", spoken(clock, deadline, say, lacks));
    } catch (const Error& error) {
        if (error.code() != "not-verified") throw;
    }
    return events;
}

}  // namespace kmm::drive
