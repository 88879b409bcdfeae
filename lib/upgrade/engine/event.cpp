// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/event.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"

namespace kmm::upgrade {
namespace {

constexpr std::array k_kinds = {EventKind::intent, EventKind::done,    EventKind::failed, EventKind::observed,
                                EventKind::paused, EventKind::resumed, EventKind::retry,  EventKind::skip};

}  // namespace

std::string_view to_string(EventKind kind) noexcept {
    switch (kind) {
        case EventKind::intent: return "intent";
        case EventKind::done: return "done";
        case EventKind::failed: return "failed";
        case EventKind::observed: return "observed";
        case EventKind::paused: return "paused";
        case EventKind::resumed: return "resumed";
        case EventKind::retry: return "retry";
        case EventKind::skip: return "skip";
    }
    return "unknown";
}

value::Node encode(const Event& event) {
    auto tree = value::Node::mapping({{"event", to_string(event.kind)}});
    const auto text = [&](const char* key, const std::string& value) {
        if (!value.empty()) tree.set(key, value);
    };
    text("node", event.node);
    text("step", event.step);
    text("from", event.from);
    text("to", event.to);
    text("reason", event.reason);
    text("message", event.message);
    if (!event.facts.members().empty()) tree.set("facts", event.facts);
    for (const auto& member : event.extra.members())
        if (tree.find(member.key) == nullptr) tree.set(member.key, member.value);
    return tree;
}

Event decode_event(const value::Node& node) {
    if (!node.is_mapping()) throw Error(Exit::io, "state-damaged", "an entry of the journal is not a mapping");
    Event event;
    bool known = false;
    const auto kind = node.get_string({"event"});
    for (const auto candidate : k_kinds) {
        if (kind != to_string(candidate)) continue;
        event.kind = candidate;
        known = true;
    }
    if (!known)
        throw Error(Exit::io, "state-damaged", fmt::format("the journal has an entry of unknown kind \"{}\"", kind));
    for (const auto& member : node.members()) {
        std::string* target = member.key == "node"      ? &event.node
                              : member.key == "step"    ? &event.step
                              : member.key == "from"    ? &event.from
                              : member.key == "to"      ? &event.to
                              : member.key == "reason"  ? &event.reason
                              : member.key == "message" ? &event.message
                                                        : nullptr;
        if (target != nullptr) {
            if (!member.value.is_string())
                throw Error(Exit::io, "state-damaged",
                            fmt::format("{} of an event is a {}, expected a string", member.key,
                                        value::kind_name(member.value.kind())));
            *target = member.value.text();
        } else if (member.key == "facts") {
            if (!member.value.is_mapping())
                throw Error(Exit::io, "state-damaged", "facts of an event are not a mapping");
            event.facts = member.value;
        } else if (member.key != "event") {
            event.extra.set(member.key, member.value);
        }
    }
    return event;
}

}  // namespace kmm::upgrade
