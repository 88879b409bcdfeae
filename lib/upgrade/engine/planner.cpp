// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/planner.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::upgrade {
namespace {

Decision move(const Run& run, EventKind kind, std::string step, std::string to, std::string message = "") {
    Decision decision;
    decision.next = Next::move;
    decision.event.kind = kind;
    decision.event.step = std::move(step);
    decision.event.from = run.state;
    decision.event.to = std::move(to);
    decision.event.message = std::move(message);
    return decision;
}

Decision pause(std::string reason, std::string message) {
    Decision decision;
    decision.next = Next::pause;
    decision.event.kind = EventKind::paused;
    decision.event.reason = std::move(reason);
    decision.event.message = std::move(message);
    return decision;
}

Decision simple(Next next) {
    Decision decision;
    decision.next = next;
    return decision;
}

/// What a decision is about: the run, and the nodes a step of which is being carried out.
struct Now {
    const Run& run;
    const std::set<std::string>& in_flight;
    const NodeIndex& index;
    [[nodiscard]] const NodeRecord* find(std::string_view name) const {
        const auto place = index.place_of(name);
        return place ? &run.nodes[*place] : nullptr;
    }
    [[nodiscard]] bool is_in_flight(const NodeRecord& node) const {
        return !in_flight.empty() && in_flight.contains(node.name);
    }
};

/// Nodes whose cordon must be lifted though no step of theirs will do it.
std::vector<std::string> left_cordoned(const Now& now) {
    const auto& run = now.run;
    std::set<std::string> others;
    if (run.state == k_run_aborting)
        for (auto& name : rollback_nodes(run, run.rollback.value_or(Rollback::none))) others.insert(std::move(name));
    std::vector<std::string> names;
    for (const auto place : now.index.under_way()) {
        const auto& node = run.nodes[place];
        const bool is_over = is_final_node_state(node.state) || run.state == k_run_aborting;
        if (node.cordon == k_cordon_ours && is_over && !others.contains(node.name) && !now.is_in_flight(node))
            names.push_back(node.name);
    }
    return names;
}

Decision next_of_abort(const Run& run, const std::set<std::string>& in_flight) {
    if (!in_flight.empty()) return simple(Next::wait);
    for (const auto& node : run.nodes)
        if (node.state == "rolling-back-failed" && run.rollback.value_or(Rollback::none) != Rollback::none)
            return move(run, EventKind::failed, std::string(k_step_abort), std::string(k_run_aborting_failed),
                        node.name + ": " + node.message);
    const auto left = rollback_nodes(run, run.rollback.value_or(Rollback::none));
    if (left.empty()) return move(run, EventKind::done, std::string(k_step_abort), std::string(k_run_aborted));
    Decision decision;
    decision.next = Next::steps;
    decision.steps.push_back(NodeStep{left.front(), std::string(k_step_rollback)});
    return decision;
}

/// Whether the zone of `node` may be begun: those before it in the order are through.
bool is_turn_of_zone(const Run& run, const NodeRecord& node) {
    if (run.options.order != "zone") return true;
    for (const auto& earlier : run.nodes) {
        if (earlier.zone == node.zone) return true;
        if (!is_final_node_state(earlier.state) && !is_failed_node_state(earlier.state)) return false;
    }
    return true;
}

/// True for a node that `stage` has nothing left to do with.
bool is_through(const Procedure& procedure, const Run& run, const NodeRecord& node, const Stage& stage) {
    return is_final_node_state(node.state) ||
           (!is_failed_node_state(node.state) && procedure.next_step(run, node, stage).empty());
}

Decision next_of_walk(const Procedure& procedure, const Now& now, const Stage& stage, const Members& members) {
    const auto& run = now.run;
    const NodeRecord* failed = nullptr;
    std::int64_t failures = 0;
    std::int64_t active = 0;
    std::int64_t finals = now.index.finals();
    const auto limit = members.limit(run);
    std::vector<const NodeRecord*> again;
    Decision decision;
    // Begun by the driver, but its intent is not recorded yet.
    for (const auto& name : now.in_flight)
        if (const auto* node = now.find(name);
            node != nullptr && !is_active_node(run, *node) && !is_final_node_state(node->state))
            ++active;
    for (const auto place : now.index.under_way()) {
        const auto& node = run.nodes[place];
        if (!is_active_node(run, node)) continue;
        if (is_failed_node_state(node.state)) {
            if (run.options.failure_budget == 0) ++active;
            ++failures;
            if (failed == nullptr) failed = &node;
            continue;
        }
        // More nodes than may be in flight can have failed, with a failure budget or at the last look: those that are
        // tried again take turns.
        if (node.state == k_node_pending && !now.is_in_flight(node)) {
            again.push_back(&node);
            continue;
        }
        ++active;
        if (!now.is_in_flight(node))
            decision.steps.push_back(NodeStep{node.name, procedure.next_step(run, node, stage)});
    }
    for (const auto* node : again) {
        // A node that a person sends back is begun although others that have failed count as unavailable.
        const bool is_alone = decision.steps.empty() && now.in_flight.empty();
        if (active >= limit && !is_alone) break;
        if (!is_alone && procedure.is_held_back(run, *now.index.place_of(node->name))) continue;
        decision.steps.push_back(NodeStep{node->name, procedure.next_step(run, *node, stage)});
        ++active;
    }
    if (run.options.failure_budget > 0) finals += failures;
    if (failures <= members.failure_budget) {
        const std::int64_t stop = run.options.pause_after == 0 ? INT64_MAX : run.batch_base + run.options.pause_after;
        for (const auto place : members.places) {
            if (place < now.index.begun_until() && !now.index.is_under_way(place)) continue;
            const auto& node = run.nodes[place];
            const bool is_new = node.touched == 0 || procedure.table().is_rest(node.state);
            if (!is_new || is_through(procedure, run, node, stage) || now.is_in_flight(node)) continue;
            if (active >= limit || finals + active >= stop || !is_turn_of_zone(run, node)) break;
            if (procedure.is_held_back(run, place)) continue;
            decision.steps.push_back(NodeStep{node.name, procedure.next_step(run, node, stage)});
            ++active;
        }
    }
    if (!decision.steps.empty()) {
        decision.next = Next::steps;
        return decision;
    }
    if (!now.in_flight.empty()) return simple(Next::wait);
    if (failed != nullptr) return move(run, EventKind::failed, stage.name, stage.failed, failed_note(*failed));
    if (std::all_of(members.places.begin(), members.places.end(),
                    [&](std::size_t place) { return is_through(procedure, run, run.nodes[place], stage); }))
        return move(run, EventKind::done, stage.name, stage.done);
    const auto nodes =
        run.options.pause_after == 1 ? std::string("1 node") : fmt::format("{} nodes", run.options.pause_after);
    return pause("pause-after", nodes + " since the last stop, as --pause-after asks");
}

/// The run is under way in `stage`.
Decision next_of_stage(const Procedure& procedure, const Now& now, const Stage& stage) {
    if (stage.is_walk()) return next_of_walk(procedure, now, stage, procedure.members(now.run, stage));
    if (!now.in_flight.empty()) return simple(Next::wait);
    Decision decision;
    decision.next = Next::steps;
    decision.steps.push_back(NodeStep{"", stage.name});
    return decision;
}

/// `stage` has failed: it goes on once a failed node was sent back or left out; a step of the run itself once a person
/// begins it again.
Decision after_failure(const Run& run, const Stage& stage) {
    if (!stage.is_walk())
        return pause(std::string(k_pause_step_failed),
                     fmt::format("{}: {}", stage.name, run.step_reason) + cordon_note(run));
    const auto failed = std::find_if(run.nodes.begin(), run.nodes.end(),
                                     [](const NodeRecord& node) { return is_failed_node_state(node.state); });
    const bool is_retried = std::any_of(run.nodes.begin(), run.nodes.end(), [&](const NodeRecord& node) {
        return is_active_node(run, node) && !is_failed_node_state(node.state);
    });
    if (failed != run.nodes.end() && !is_retried) return pause("node-failed", failed_note(*failed) + cordon_note(run));
    return move(run, EventKind::intent, stage.name, stage.during);
}

/// The stage `last` is done, or none was begun (nullptr): the next one that is not left out.
Decision after_stage(const Procedure& procedure, const Run& run, const Stage* last) {
    if (last != nullptr && last->is_walk())
        for (const auto& node : run.nodes)
            if (is_failed_node_state(node.state))  // it was done, and is so no more
                return move(run, EventKind::failed, last->name, last->failed, failed_note(node));
    if (last != nullptr && last->pauses && run.resumed_in != run.state)
        return pause(last->name, procedure.pause_note(run, *last));
    bool is_passed = last == nullptr;
    for (const auto& stage : procedure.table().stages()) {
        if (is_passed && !procedure.members(run, stage).is_left_out)
            return move(run, EventKind::intent, stage.name, stage.during);
        is_passed = is_passed || &stage == last;
    }
    return move(run, EventKind::done, std::string(k_step_complete), std::string(k_run_complete));
}

}  // namespace

bool is_active_node(const Header& run, const NodeRecord& node) {
    return node.touched != 0 && !is_final_node_state(node.state) && !procedure_of(run).table().is_rest(node.state);
}

std::vector<std::string> active_nodes(const Run& run) {
    std::vector<std::string> names;
    for (const auto& node : run.nodes)
        if (is_active_node(run, node)) names.push_back(node.name);
    return names;
}

std::vector<std::string> busy_nodes(const Run& run) {
    std::vector<std::string> names;
    for (const auto& node : run.nodes)
        if (is_active_node(run, node) && (run.options.failure_budget == 0 || !is_failed_node_state(node.state)))
            names.push_back(node.name);
    return names;
}

std::vector<std::string> rollback_nodes(const Run& run, Rollback rollback) {
    struct Chosen {
        int rank;
        const NodeRecord* node;
    };
    std::vector<Chosen> chosen;
    if (rollback == Rollback::none) return {};
    const auto& procedure = procedure_of(run);
    for (const auto& node : run.nodes) {
        if (node.touched == 0 || node.state == k_node_rolled_back) continue;
        if (rollback == Rollback::all || !is_final_node_state(node.state))
            chosen.push_back({procedure.rollback_rank(run, node), &node});
    }
    std::sort(chosen.begin(), chosen.end(), [](const Chosen& left, const Chosen& right) {
        return left.rank != right.rank ? left.rank < right.rank : left.node->touched > right.node->touched;
    });
    std::vector<std::string> names;
    for (const auto& each : chosen) names.push_back(each.node->name);
    return names;
}

Counts count(const Run& run) {
    Counts counts;
    counts.total = run.nodes.size();
    for (const auto& node : run.nodes) {
        if (node.state == k_node_done) ++counts.done;
        else if (node.state == k_node_skipped) ++counts.skipped;
        else if (node.state == k_node_rolled_back) ++counts.rolled_back;
        else if (is_failed_node_state(node.state)) ++counts.failed;
        else if (is_active_node(run, node)) ++counts.active;
        else ++counts.pending;
    }
    return counts;
}

Decision next_steps(const Run& run, const std::set<std::string>& in_flight) {
    return next_steps(run, in_flight, NodeIndex(run));
}

Decision next_steps(const Run& run, const std::set<std::string>& in_flight, const NodeIndex& index) {
    const Now now{run, in_flight, index};
    if (is_final_run_state(run.state)) return simple(Next::finished);
    if (run.paused) return pause(run.pause_reason, run.pause_message);
    if (const auto names = left_cordoned(now); !names.empty()) {
        Decision decision;
        decision.next = Next::steps;
        for (const auto& name : names) decision.steps.push_back(NodeStep{name, std::string(k_step_release)});
        return decision;
    }
    if (run.state == k_run_aborting) return next_of_abort(run, in_flight);
    if (run.state == k_run_aborting_failed) return pause("rollback-failed", "a node could not be rolled back");
    const auto& procedure = procedure_of(run);
    const auto* stage = procedure.table().stage_of(run.state);
    if (stage == nullptr || run.state == stage->done) return after_stage(procedure, run, stage);
    return run.state == stage->failed ? after_failure(run, *stage) : next_of_stage(procedure, now, *stage);
}

bool is_through(const Run& run) {
    const auto counts = count(run);
    return !run.rollback && counts.failed > 0 &&
           static_cast<std::int64_t>(counts.failed) <= run.options.failure_budget && counts.pending == 0 &&
           counts.active == 0;
}

std::vector<std::string> cordoned_nodes(const Run& run) {
    std::vector<std::string> names;
    for (const auto& node : run.nodes)
        if (node.cordon == k_cordon_ours) names.push_back(node.name);
    return names;
}

std::string cordon_note(const Run& run) {
    const auto names = cordoned_nodes(run);
    return names.empty() ? "" : fmt::format("; still {}: {}", describe(run).hold, base::join(names, ", "));
}

namespace {

/// How far `state` is in the order of stages: 0 at the start, then two for each stage, the second for its done state.
std::size_t progress_of(const Table& table, const std::string& state) {
    std::size_t place = 0;
    for (const auto& stage : table.stages()) {
        if (state == stage.done) return place + 2;
        if (state == stage.during || state == stage.failed) return place + 1;
        place += 2;
    }
    return 0;
}

}  // namespace

std::string until_note(const Run& run, const Event& move) {
    if (run.until.empty() || run.rollback) return "";
    if (run.state == run.until) return fmt::format("{} is reached, as --until asks", run.until);
    const auto& procedure = procedure_of(run);
    const auto is_behind = move.kind == EventKind::intent && procedure.table().find_stage(move.step) != nullptr &&
                           progress_of(procedure.table(), move.to) > progress_of(procedure.table(), run.until);
    if (!is_behind || !procedure.describe(run).follows.empty()) return "";
    return fmt::format("{} is left out of this upgrade: stopped before {}, as --until asks", run.until, move.to);
}

std::string until_problem(const Run& run, const std::string& state) {
    const auto& procedure = procedure_of(run);
    if (procedure.table().kind(Scope::run, state) != StateKind::resting)
        return fmt::format("expected a state in which an upgrade rests, found '{}'", base::escape(state));
    if (run.rollback) return "the upgrade is being aborted";
    const bool is_past = run.state == state ? run.paused && run.pause_reason == k_pause_until
                                            : progress_of(procedure.table(), run.state) >
                                                  progress_of(procedure.table(), state);
    if (!is_past || !procedure.describe(run).follows.empty()) return "";
    return fmt::format("the upgrade is in state {}: {} is behind it", run.state, state);
}

std::string failed_note(const NodeRecord& node) { return node.name + ": " + node.reason; }

std::vector<std::string> next_commands(const Run& run) {
    if (is_followed(run)) return {"kmm-upgrade resume", "kmm-upgrade delete"};
    if (run.state == "upgrade-complete" || run.state == "upgrade-aborted") return {"kmm-upgrade delete"};
    if (run.state == k_run_aborting) return {"kmm-upgrade resume"};
    if (run.state == "upgrade-aborting-failed") return {"kmm-upgrade resume", "kmm-upgrade abort --rollback none"};
    if (!run.step_reason.empty()) return {"kmm-upgrade resume", "kmm-upgrade abort"};
    for (const auto& node : run.nodes) {
        if (!is_failed_node_state(node.state)) continue;
        std::vector<std::string> commands{"kmm-upgrade retry " + node.name};
        if (procedure_of(run).skip_refusal(run, node).empty())
            commands.push_back("kmm-upgrade skip " + node.name + " --reason TEXT");
        const bool has_way_back = procedure_of(run).has_way_back(run, rollback_nodes(run, Rollback::current));
        commands.emplace_back(has_way_back ? "kmm-upgrade abort --rollback current" : "kmm-upgrade abort");
        return commands;
    }
    if (run.paused && run.pause_reason == "manual") return {"kmm-upgrade step", "kmm-upgrade resume"};
    return {"kmm-upgrade resume", "kmm-upgrade abort"};
}

}  // namespace kmm::upgrade
