// SPDX-License-Identifier: Apache-2.0
#include "upgrade/replay.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "upgrade/planner.hpp"

namespace kmm::upgrade {
namespace {

[[noreturn]] void damaged(std::string message) { throw Error(Exit::io, "state-damaged", std::move(message)); }

std::optional<Cause> cause_of(EventKind kind) {
    switch (kind) {
        case EventKind::intent: return Cause::begin;
        case EventKind::done: return Cause::finish;
        case EventKind::failed: return Cause::fail;
        case EventKind::observed: return Cause::observe;
        case EventKind::retry: return Cause::retry;
        case EventKind::skip: return Cause::skip;
        case EventKind::paused:
        case EventKind::resumed: return std::nullopt;
    }
    return std::nullopt;
}

std::int64_t final_nodes(const Run& run) {
    return std::count_if(run.nodes.begin(), run.nodes.end(),
                         [](const NodeRecord& node) { return is_final_node_state(node.state); });
}

void check_legal(const Run& run, const Event& event, Scope scope, Cause cause, const std::string& state) {
    if (event.from != state)
        damaged(fmt::format("{} of {} starts from {}, but the state is {}", to_string(event.kind),
                            event.node.empty() ? "the run" : event.node, event.from, state));
    const bool stepless = cause == Cause::retry || cause == Cause::skip || cause == Cause::observe;
    if (!procedure_of(run).legal(Move{scope, event.from, event.to, cause, stepless ? "" : event.step}))
        damaged(fmt::format("{} {} from {} to {} is no legal move", to_string(event.kind), event.step, event.from, event.to));
}

void apply_run(Run& run, const Event& event, const std::string& time) {
    if (event.kind == EventKind::paused) {
        if (run.paused) damaged("the run is paused twice");
        run.paused = true;
        run.pause_reason = event.reason;
        run.pause_message = event.message;
        return;
    }
    if (event.kind == EventKind::resumed) {
        // Going on after a crash is no consent to pass a stop that was asked for: only a recorded pause can be passed.
        if (run.paused) {
            run.batch_base = final_nodes(run);
            run.resumed_in = run.state;
        }
        run.paused = false;
        run.pause_reason.clear();
        run.pause_message.clear();
        return;
    }
    const auto cause = cause_of(event.kind);
    if (!cause) damaged("an event without a cause");
    check_legal(run, event, Scope::run, *cause, run.state);
    if (event.step == "abort" && event.kind == EventKind::intent) {
        const auto rollback = parse_rollback(event.facts.get_string({"rollback"}));
        if (!rollback) damaged("an abort without a rollback policy");
        run.rollback = rollback;
    }
    if (event.step == "complete" && final_nodes(run) != static_cast<std::int64_t>(run.nodes.size()))
        damaged("the run is completed while nodes are not");
    run.state = event.to;
    run.since = time;
}

/// The pause was for a failed node that is skipped now: another one, or none, is what the run stands at.
void renew_pause(Run& run, const std::string& skipped) {
    if (!run.paused || run.pause_reason != "node-failed") return;
    const auto failed = std::find_if(run.nodes.begin(), run.nodes.end(), [](const NodeRecord& node) { return is_failed_node_state(node.state); });
    run.pause_message = failed != run.nodes.end() ? failed_note(*failed) : skipped + " is skipped, no failed node is left";
}

void apply_node(Run& run, const Event& event, const std::string& time) {
    auto* node = run.find(event.node);
    if (node == nullptr) damaged(fmt::format("node {} is not in the record", event.node));
    const auto cause = cause_of(event.kind);
    if (!cause) damaged(fmt::format("{} is no event of a node", to_string(event.kind)));
    check_legal(run, event, Scope::node, *cause, node->state);
    NodeRecord next = *node;
    switch (event.kind) {
        case EventKind::intent: {
            if (procedure_of(run).kind(Scope::run, run.state) != StateKind::transitory)
                damaged(fmt::format("step {} begins on {} while the run is in {}", event.step, event.node, run.state));
            const bool back = event.step == "rollback";
            if (back != (run.state == "upgrade-aborting"))
                damaged(fmt::format("step {} begins on {} while the run is in {}", event.step, event.node, run.state));
            if (node->open && !back && node->step != event.step)
                damaged(fmt::format("step {} begins on {} in the middle of {}", event.step, event.node, node->step));
            const auto active = busy_nodes(run);
            if (node->touched == 0 && !back &&
                static_cast<std::int64_t>(active.size()) >= run.options.max_unavailable)
                damaged(fmt::format("node {} begins while {} are in flight, at most {} may", event.node,
                                    active.size(), run.options.max_unavailable));
            next.open = true;
            next.step = event.step;
            if (next.touched == 0)
                for (const auto& other : run.nodes) next.touched = std::max(next.touched, other.touched + 1);
            if (event.step == "check") ++next.attempts;
            next.reason.clear();
            next.kernel_line.clear();
            next.hint.clear();
            break;
        }
        case EventKind::done:
        case EventKind::failed:
            if (!node->open || node->step != event.step)
                damaged(fmt::format("step {} of {} ends without having begun", event.step, event.node));
            next.open = false;
            break;
        case EventKind::observed:
            if (event.to != event.from) {
                next.open = false;
                next.next.clear();
            }
            break;
        case EventKind::retry:
            next.open = false;
            next.next.clear();
            next.kernel_line.clear();
            next.hint.clear();
            break;
        case EventKind::skip:
        case EventKind::paused:
        case EventKind::resumed: break;
    }
    if (event.kind != EventKind::observed || event.to != event.from) next.reason = event.reason;
    if (!event.message.empty()) next.message = event.message;
    if (event.to != event.from || event.kind == EventKind::intent) next.since = time;
    next.state = event.to;
    merge(next, event.facts);
    *node = std::move(next);
    if (event.kind == EventKind::skip) renew_pause(run, event.node);
}

}  // namespace

const Procedure& procedure_of(const Run& run) {
    if (run.procedure == k_procedure_module) return procedure_module();
    if (run.is_apply()) return procedure_apply();
    throw Error(Exit::config, "unknown-procedure",
                fmt::format("the record is of procedure \"{}\", this program walks \"module\" and \"apply\"", run.procedure))
        .hint("use the program version that started it: " + run.tool_version);
}

void apply(Run& run, const Event& event, const std::string& time) {
    if (is_final_run_state(run.state)) damaged(fmt::format("the journal goes on after {}", run.state));
    if (event.node.empty())
        apply_run(run, event, time);
    else
        apply_node(run, event, time);
    ++run.events;
}

Run replay(const std::vector<TimedPayload>& entries) {
    if (entries.empty()) throw bug("replay of an empty journal");
    Run run = decode_run(entries.front().payload);
    const auto& procedure = procedure_of(run);
    if (run.state != procedure.run_initial()) damaged(fmt::format("the journal begins in state {}", run.state));
    for (const auto& node : run.nodes)
        if (node.state != procedure.node_initial())
            damaged(fmt::format("the journal begins with node {} in state {}", node.name, node.state));
    run.events = 1;
    for (std::size_t index = 1; index < entries.size(); ++index)
        with_context([&] { return fmt::format("journal entry {}", index + 1); },
                     [&] { apply(run, decode_event(entries[index].payload), entries[index].time); });
    return run;
}

}  // namespace kmm::upgrade
