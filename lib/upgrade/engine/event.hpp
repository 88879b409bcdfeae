// SPDX-License-Identifier: Apache-2.0
// The payloads of the journal after its header: one event each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "upgrade/engine/run.hpp"
#include "value/node.hpp"

namespace kmm::upgrade {

/// `intent` is recorded before a step acts, `done` or `failed` after; `observed` is a look at a node that settles what
/// a crash or a lost connection left open; the rest are decisions of a person or of the planner.
enum class EventKind { intent, done, failed, observed, paused, resumed, retry, skip };

[[nodiscard]] std::string_view to_string(EventKind kind) noexcept;

struct Event {
    EventKind kind = EventKind::intent;
    std::string node;   ///< "" for events of the run
    std::string step;   ///< of intent, done and failed
    std::string from, to;  ///< states of the node, or of the run when `node` is ""
    std::string reason, message;
    value::Node facts;  ///< mapping of what was found; members named as in NodeRecord's tree form are taken over
    value::Node extra;  ///< members this program does not know, kept
};

/// {"event":"intent","node":"a","step":"copy","from":"pending","to":"copying",...}; empty members are left out.
[[nodiscard]] value::Node encode(const Event& event);
/// Errors: io "state-damaged".
[[nodiscard]] Event decode_event(const value::Node& node);

}  // namespace kmm::upgrade
