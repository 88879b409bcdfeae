// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/replay.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "upgrade/engine/hint.hpp"
#include "upgrade/engine/planner.hpp"

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

void check_legal(const Run& run, const Event& event, Scope scope, Cause cause, const std::string& state) {
    if (event.from != state)
        damaged(fmt::format("{} of {} starts from {}, but the state is {}", to_string(event.kind),
                            event.node.empty() ? "the run" : event.node, event.from, state));
    const bool stepless = cause == Cause::retry || cause == Cause::skip || cause == Cause::observe;
    if (!procedure_of(run).table().legal(Move{scope, event.from, event.to, cause, stepless ? "" : event.step}))
        damaged(fmt::format("{} {} from {} to {} is not a legal move", to_string(event.kind), event.step, event.from,
                            event.to));
}

/// The pause was for a failed node that is skipped now: another one, or none, is what the run stands at.
void renew_pause(const Run& run, const std::string& skipped, RunState& next) {
    if (!run.paused || run.pause_reason != "node-failed") return;
    const auto failed = std::find_if(run.nodes.begin(), run.nodes.end(), [&](const NodeRecord& node) {
        return node.name != skipped && is_failed_node_state(node.state);
    });
    next.pause_message =
        failed != run.nodes.end() ? failed_note(*failed) : skipped + " is skipped, no failed node is left";
}

}  // namespace

const NodeRecord* Ledger::find(std::string_view name) const {
    const auto place = index_.place_of(name);
    return place ? &run_.nodes[*place] : nullptr;
}

void Ledger::judge_run(const Event& event, const std::string& time, RunState& next) const {
    if (event.kind == EventKind::paused) {
        if (run_.paused) damaged("the run is paused twice");
        next.paused = true;
        next.pause_reason = event.reason;
        next.pause_message = event.message;
        return;
    }
    if (event.kind == EventKind::resumed) {
        // Going on after a crash is no consent to pass a stop that was asked for: only a recorded pause can be passed.
        if (run_.paused) {
            next.batch_base = index_.finals();
            next.resumed_in = run_.state;
            // A stage that stops by itself has stopped there, too.
            const auto* stage = procedure_of(run_).table().stage_of(run_.until);
            if (run_.pause_reason == k_pause_until ||
                (run_.state == run_.until && stage != nullptr && run_.pause_reason == stage->name))
                next.until.clear();
        }
        if (const auto* until = event.facts.find("until")) next.until = until->text();
        next.paused = false;
        next.pause_reason.clear();
        next.pause_message.clear();
        return;
    }
    const auto cause = cause_of(event.kind);
    if (!cause) damaged("an event without a cause");
    check_legal(run_, event, Scope::run, *cause, run_.state);
    if (event.step == k_step_abort && event.kind == EventKind::intent) {
        next.rollback = parse_rollback(event.facts.get_string({"rollback"}));
        if (!next.rollback) damaged("an abort without a rollback policy");
    }
    if (event.step == k_step_complete && index_.finals() != static_cast<std::int64_t>(run_.nodes.size()))
        damaged("the run is completed while nodes are not");
    next.state = event.to;
    next.since = time;
    if (event.from == run_.until || event.step == k_step_abort) next.until.clear();
    const auto* stage = procedure_of(run_).table().find_stage(event.step);
    if (stage == nullptr || stage->is_walk()) return;
    const bool has_failed = event.kind == EventKind::failed;
    next.step_reason = has_failed ? event.reason : "";
    next.step_message = has_failed ? event.message : "";
    next.step_hint = has_failed ? event.facts.get_string({"hint"}) : "";
}

NodeRecord Ledger::begin_step(const NodeRecord& node, const Event& event) const {
    const bool back = event.step == k_step_rollback;
    const auto& table = procedure_of(run_).table();
    const auto* stage = table.stage_of(run_.state);
    const bool is_in_turn =
        back ? run_.state == k_run_aborting
             : stage != nullptr && stage->during == run_.state &&
                   std::find(stage->steps.begin(), stage->steps.end(), event.step) != stage->steps.end();
    if (!is_in_turn)
        damaged(fmt::format("step {} begins on {} while the run is in {}", event.step, event.node, run_.state));
    if (node.open && !back && node.step != event.step)
        damaged(fmt::format("step {} begins on {} in the middle of {}", event.step, event.node, node.step));
    if ((node.touched == 0 || table.is_rest(node.state)) && !back && index_.busy() >= run_.options.max_unavailable)
        damaged(fmt::format("node {} begins while {} are in flight, at most {} may", event.node, index_.busy(),
                            run_.options.max_unavailable));
    NodeRecord next = node;
    next.open = true;
    next.step = event.step;
    if (next.touched == 0) next.touched = index_.last_touched() + 1;
    if (!back && event.step == stage->steps.front()) ++next.attempts;
    next.reason.clear();
    next.hint.clear();
    forget(next, procedure_of(run_), Life::outcome);
    return next;
}

NodeRecord Ledger::judge_node(const NodeRecord& node, const Event& event, const std::string& time) const {
    const auto cause = cause_of(event.kind);
    if (!cause) damaged(fmt::format("{} is not an event of a node", to_string(event.kind)));
    check_legal(run_, event, Scope::node, *cause, node.state);
    NodeRecord next = event.kind == EventKind::intent ? begin_step(node, event) : node;
    switch (event.kind) {
        case EventKind::done:
        case EventKind::failed:
            if (!node.open || node.step != event.step)
                damaged(fmt::format("step {} of {} ends without having begun", event.step, event.node));
            next.open = false;
            break;
        case EventKind::observed:
            if (event.to != event.from) {
                next.open = false;
                forget(next, procedure_of(run_), Life::plan);
            }
            break;
        case EventKind::retry:
            next.open = false;
            next.hint.clear();
            forget(next, procedure_of(run_), Life::plan);
            forget(next, procedure_of(run_), Life::outcome);
            break;
        case EventKind::intent:
        case EventKind::skip:
        case EventKind::paused:
        case EventKind::resumed: break;
    }
    if (event.kind != EventKind::observed || event.to != event.from) next.reason = event.reason;
    if (!event.message.empty()) next.message = event.message;
    if (event.to != event.from || event.kind == EventKind::intent) next.since = time;
    next.state = event.to;
    merge(next, event.facts, procedure_of(run_));
    return next;
}

Ledger::Change Ledger::judge(const Event& event, const std::string& time) const {
    if (is_final_run_state(run_.state)) damaged(fmt::format("the journal goes on after {}", run_.state));
    Change change;
    change.run = run_;
    if (event.node.empty()) {
        judge_run(event, time, change.run);
        if (is_final_run_state(change.run.state)) {
            change.run.step_hint = hint_after_end(change.run.step_hint);
            for (std::size_t place = 0; place < run_.nodes.size(); ++place)
                if (const auto& hint = run_.nodes[place].hint; !hint.empty())
                    change.hints.emplace_back(place, hint_after_end(hint));
        }
        const auto* subject = event.kind == EventKind::resumed ? event.facts.find("subject") : nullptr;
        if (subject != nullptr && !subject->is_mapping()) damaged("the subject of the run is changed to no mapping");
        if (subject != nullptr) change.subject = *subject;
    } else {
        const auto place = index_.place_of(event.node);
        if (!place) damaged(fmt::format("node {} is not in the record", event.node));
        change.place = *place;
        change.node = judge_node(run_.nodes[*place], event, time);
        if (event.kind == EventKind::skip) renew_pause(run_, event.node, change.run);
    }
    ++change.run.events;
    return change;
}

void Ledger::commit(Change change) noexcept {
    static_cast<RunState&>(run_) = std::move(change.run);
    for (auto& [place, hint] : change.hints) run_.nodes[place].hint = std::move(hint);
    if (change.subject) run_.subject = std::move(*change.subject);
    if (!change.node) return;
    index_.leave(run_, change.place);
    run_.nodes[change.place] = std::move(*change.node);
    index_.enter(run_, change.place);
}

const Procedure& find_procedure(const Header& run, const Procedures& procedures) {
    std::vector<std::string> names;
    for (const auto* procedure : procedures) {
        if (procedure->table().name() == run.procedure) return *procedure;
        names.push_back(procedure->table().name());
    }
    throw Error(
        Exit::config, "state-newer",
        fmt::format("the record is of procedure \"{}\", this program knows {}", run.procedure, base::join(names, ", ")))
        .hint(fmt::format("use kmm-upgrade {} or newer", run.tool_version));
}

const Procedure& procedure_of(const Header& run) {
    if (run.rules == nullptr) throw bug("a run without the rules of its procedure");
    return *run.rules;
}

Description describe(const Run& run) { return procedure_of(run).describe(run); }

bool is_followed(const Run& run) { return run.state == k_run_complete && !describe(run).follows.empty(); }

Run replay(const std::vector<TimedPayload>& entries, const Procedures& procedures) {
    if (entries.empty()) throw bug("replay of an empty journal");
    Run run = decode_run(entries.front().payload, procedures);
    if (run.state != k_run_started) damaged(fmt::format("the journal begins in state {}", run.state));
    for (const auto& node : run.nodes)
        if (node.state != k_node_pending)
            damaged(fmt::format("the journal begins with node {} in state {}", node.name, node.state));
    run.events = 1;
    Ledger ledger(std::move(run));
    for (std::size_t index = 1; index < entries.size(); ++index)
        with_context([&] { return fmt::format("journal entry {}", index + 1); },
                     [&] { ledger.commit(ledger.judge(decode_event(entries[index].payload), entries[index].time)); });
    return std::move(ledger).release();
}

}  // namespace kmm::upgrade
