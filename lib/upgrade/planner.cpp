// SPDX-License-Identifier: Apache-2.0
#include "upgrade/planner.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::upgrade {
namespace {

bool is_active(const NodeRecord& node) { return node.touched != 0 && !is_final_node_state(node.state); }

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

/// The step a node stands before or in the middle of; "" for none.
std::string step_of(const Run& run, const NodeRecord& node) {
    if (node.state == "pending") return "check";
    if (node.state == "checking") {
        if (node.open || node.next.empty()) return "check";
        // Nobody has to leave a node on which nothing is left to change.
        return run.options.drain && node.next != "validate" ? "cordon" : node.next;
    }
    if (node.state == "cordoning") return "cordon";
    if (node.state == "cordoned" || node.state == "draining") return "drain";
    if (node.state == "drained") return node.next;
    if (node.state == "unloading") return "unload";
    if (node.state == "unloaded" && node.goal == k_goal_absent) return "validate";
    if (node.state == "unloaded" || node.state == "loading") return "load";
    if (node.state == "loaded" || (node.state == "validating" && node.open)) return "validate";
    if (node.state == "validating" || node.state == "uncordoning") return "uncordon";
    return "";
}

/// Nodes whose cordon must be lifted though no step of theirs will do it.
std::vector<std::string> left_cordoned(const Run& run, const std::set<std::string>& in_flight) {
    std::set<std::string> others;
    if (run.state == "upgrade-aborting")
        for (auto& name : rollback_nodes(run, run.rollback.value_or(Rollback::none))) others.insert(std::move(name));
    std::vector<std::string> names;
    for (const auto& node : run.nodes) {
        const bool is_over = is_final_node_state(node.state) || run.state == "upgrade-aborting";
        if (node.cordon == k_cordon_ours && is_over && !others.contains(node.name) && !in_flight.contains(node.name))
            names.push_back(node.name);
    }
    return names;
}

Decision next_of_abort(const Run& run, const std::set<std::string>& in_flight) {
    if (!in_flight.empty()) return simple(Next::wait);
    for (const auto& node : run.nodes)
        if (node.state == "rolling-back-failed" && run.rollback.value_or(Rollback::none) != Rollback::none)
            return move(run, EventKind::failed, "abort", "upgrade-aborting-failed", node.name + ": " + node.message);
    const auto left = rollback_nodes(run, run.rollback.value_or(Rollback::none));
    if (left.empty()) return move(run, EventKind::done, "abort", "upgrade-aborted");
    Decision decision;
    decision.next = Next::steps;
    decision.steps.push_back(NodeStep{left.front(), "rollback"});
    return decision;
}

struct Stage {
    std::string step, done, failed;
    std::size_t nodes;  ///< how many of the run's nodes, from the front, belong to it
    std::int64_t failure_budget;
};

/// Whether the zone of `node` may be begun: those before it in the order are through.
bool is_turn_of_zone(const Run& run, const NodeRecord& node) {
    if (run.options.order != "zone") return true;
    for (const auto& earlier : run.nodes) {
        if (earlier.zone == node.zone) return true;
        if (!is_final_node_state(earlier.state) && !is_failed_node_state(earlier.state)) return false;
    }
    return true;
}

Decision next_of_stage(const Run& run, const std::set<std::string>& in_flight, const Stage& stage) {
    const auto end = run.nodes.begin() + static_cast<std::ptrdiff_t>(stage.nodes);
    const NodeRecord* failed = nullptr;
    std::int64_t failures = 0;
    std::int64_t active = 0;
    std::int64_t finals = 0;
    std::vector<const NodeRecord*> again;
    Decision decision;
    for (const auto& node : run.nodes) {
        if (is_final_node_state(node.state)) ++finals;
        if (!is_active(node)) {
            // Begun by the driver, but its intent is not recorded yet.
            if (in_flight.count(node.name) != 0) ++active;
            continue;
        }
        if (is_failed_node_state(node.state)) {
            if (run.options.failure_budget == 0) ++active;
            ++failures;
            if (failed == nullptr) failed = &node;
            continue;
        }
        const bool is_in_flight = in_flight.count(node.name) != 0;
        // More nodes than may be in flight can have failed, with a failure budget or at the last look: those that are tried again take turns.
        if (node.state == "pending" && !is_in_flight) {
            again.push_back(&node);
            continue;
        }
        ++active;
        if (!is_in_flight) decision.steps.push_back(NodeStep{node.name, step_of(run, node)});
    }
    for (const auto* node : again) {
        // A node that a person sends back is begun although others that have failed count as unavailable.
        const bool is_alone = decision.steps.empty() && in_flight.empty();
        if (active >= run.options.max_unavailable && !is_alone) break;
        decision.steps.push_back(NodeStep{node->name, "check"});
        ++active;
    }
    if (run.options.failure_budget > 0) finals += failures;
    if (failures <= stage.failure_budget) {
        const std::int64_t stop = run.options.pause_after == 0 ? INT64_MAX : run.batch_base + run.options.pause_after;
        for (auto node = run.nodes.begin(); node != end; ++node) {
            if (node->touched != 0 || is_final_node_state(node->state) || in_flight.count(node->name) != 0) continue;
            if (!is_turn_of_zone(run, *node)) break;
            if (active >= run.options.max_unavailable || finals + active >= stop) break;
            decision.steps.push_back(NodeStep{node->name, "check"});
            ++active;
        }
    }
    if (!decision.steps.empty()) {
        decision.next = Next::steps;
        return decision;
    }
    if (!in_flight.empty()) return simple(Next::wait);
    if (failed != nullptr) return move(run, EventKind::failed, stage.step, stage.failed, failed_note(*failed));
    if (std::all_of(run.nodes.begin(), end, [](const NodeRecord& node) { return is_final_node_state(node.state); }))
        return move(run, EventKind::done, stage.step, stage.done);
    const auto nodes = run.options.pause_after == 1 ? std::string("1 node") : fmt::format("{} nodes", run.options.pause_after);
    return pause("pause-after", nodes + " since the last stop, as --pause-after asks");
}

/// How the canaries have ended.
std::string canary_note(const Run& run) {
    const auto canaries = std::min(static_cast<std::size_t>(run.options.canary), run.nodes.size());
    const auto first = canaries == 1 ? std::string("first node") : fmt::format("first {} nodes", canaries);
    const auto end = run.nodes.begin() + static_cast<std::ptrdiff_t>(canaries);
    const auto done = static_cast<std::size_t>(std::count_if(run.nodes.begin(), end, [](const NodeRecord& node) { return node.state == "done"; }));
    if (done == canaries) return fmt::format("the {} {} done, as --canary asks", first, canaries == 1 ? "is" : "are");
    if (done == 0) return fmt::format("the {} {} skipped: no canary is done, resume goes on with the others all the same", first, canaries == 1 ? "was" : "were");
    return fmt::format("{} of the {} {} done, {} skipped, as --canary asks", done, first, done == 1 ? "is" : "are", canaries - done);
}

bool has_canary(const Run& run) {
    return run.options.canary > 0 && run.options.canary < static_cast<std::int64_t>(run.nodes.size());
}

}  // namespace

std::vector<std::string> active_nodes(const Run& run) {
    std::vector<std::string> names;
    for (const auto& node : run.nodes)
        if (is_active(node)) names.push_back(node.name);
    return names;
}

std::vector<std::string> busy_nodes(const Run& run) {
    std::vector<std::string> names;
    for (const auto& node : run.nodes)
        if (is_active(node) && (run.options.failure_budget == 0 || !is_failed_node_state(node.state))) names.push_back(node.name);
    return names;
}

std::vector<std::string> rollback_nodes(const Run& run, Rollback rollback) {
    std::vector<const NodeRecord*> chosen;
    for (const auto& node : run.nodes) {
        if (node.touched == 0 || node.state == "rolled-back" || rollback == Rollback::none) continue;
        if (rollback == Rollback::all || !is_final_node_state(node.state)) chosen.push_back(&node);
    }
    std::sort(chosen.begin(), chosen.end(),
              [](const NodeRecord* left, const NodeRecord* right) { return left->touched > right->touched; });
    std::vector<std::string> names;
    for (const auto* node : chosen) names.push_back(node->name);
    return names;
}

Counts count(const Run& run) {
    Counts counts;
    counts.total = run.nodes.size();
    for (const auto& node : run.nodes) {
        if (node.state == "done") ++counts.done;
        else if (node.state == "skipped") ++counts.skipped;
        else if (node.state == "rolled-back") ++counts.rolled_back;
        else if (is_failed_node_state(node.state)) ++counts.failed;
        else if (node.touched != 0) ++counts.active;
        else ++counts.pending;
    }
    return counts;
}

Decision next_steps(const Run& run, const std::set<std::string>& in_flight) {
    if (is_final_run_state(run.state)) return simple(Next::finished);
    if (run.paused) return pause(run.pause_reason, run.pause_message);
    if (const auto names = left_cordoned(run, in_flight); !names.empty()) {
        Decision decision;
        decision.next = Next::steps;
        for (const auto& name : names) decision.steps.push_back(NodeStep{name, std::string(k_step_release)});
        return decision;
    }
    if (run.state == "upgrade-aborting") return next_of_abort(run, in_flight);
    if (run.state == "upgrade-aborting-failed") return pause("rollback-failed", "a node could not be rolled back");
    if (run.state == "upgrade-started") {
        return has_canary(run) ? move(run, EventKind::intent, "canary", "upgrading-canary")
                               : move(run, EventKind::intent, "nodes", "upgrading-nodes");
    }
    if (run.state == "upgraded-canary") {
        if (run.resumed_in == run.state) return move(run, EventKind::intent, "nodes", "upgrading-nodes");
        return pause("canary", canary_note(run));
    }
    if (run.state == "upgraded-nodes") return move(run, EventKind::done, "complete", "upgrade-complete");
    const auto failed = std::find_if(run.nodes.begin(), run.nodes.end(),
                                     [](const NodeRecord& node) { return is_failed_node_state(node.state); });
    if (run.state == "upgrading-canary-failed" || run.state == "upgrading-nodes-failed") {
        const bool retried = std::any_of(run.nodes.begin(), run.nodes.end(), [](const NodeRecord& node) {
            return is_active(node) && !is_failed_node_state(node.state);
        });
        if (failed != run.nodes.end() && !retried)
            return pause("node-failed", failed_note(*failed) + cordon_note(run));
        const bool canary = run.state == "upgrading-canary-failed";
        return move(run, EventKind::intent, canary ? "canary" : "nodes", canary ? "upgrading-canary" : "upgrading-nodes");
    }
    if (run.state == "upgrading-canary")
        return next_of_stage(run, in_flight,
                             {"canary", "upgraded-canary", "upgrading-canary-failed",
                              static_cast<std::size_t>(run.options.canary), 0});
    return next_of_stage(run, in_flight,
                         {"nodes", "upgraded-nodes", "upgrading-nodes-failed", run.nodes.size(), run.options.failure_budget});
}

bool is_through(const Run& run) {
    const auto counts = count(run);
    return !run.rollback && counts.failed > 0 && static_cast<std::int64_t>(counts.failed) <= run.options.failure_budget &&
           counts.pending == 0 && counts.active == 0;
}

bool drains_ahead(const Run& run) {
    constexpr std::array<std::string_view, 5> k_before{"pending", "checking", "cordoning", "cordoned", "draining"};
    if (!run.options.drain || run.rollback || is_final_run_state(run.state)) return false;
    return std::any_of(run.nodes.begin(), run.nodes.end(), [&](const NodeRecord& node) {
        std::string_view state = node.state;
        if (is_failed_node_state(state)) state = state.substr(0, state.rfind('-'));
        return std::find(k_before.begin(), k_before.end(), state) != k_before.end();
    });
}

std::vector<std::string> cordoned_nodes(const Run& run) {
    std::vector<std::string> names;
    for (const auto& node : run.nodes)
        if (node.cordon == k_cordon_ours) names.push_back(node.name);
    return names;
}

std::string cordon_note(const Run& run) {
    const auto names = cordoned_nodes(run);
    return names.empty() ? "" : "; still cordoned: " + base::join(names, ", ");
}

std::string failed_note(const NodeRecord& node) { return node.name + ": " + node.reason; }

std::vector<std::string> next_commands(const Run& run) {
    if (run.is_to_be_followed()) return {"kmm-upgrade resume", "kmm-upgrade delete"};
    if (run.state == "upgrade-complete" || run.state == "upgrade-aborted") return {"kmm-upgrade delete"};
    if (run.state == "upgrade-aborting") return {"kmm-upgrade resume"};
    if (run.state == "upgrade-aborting-failed") return {"kmm-upgrade resume", "kmm-upgrade abort --rollback none"};
    for (const auto& node : run.nodes)
        if (is_failed_node_state(node.state))
            return {"kmm-upgrade retry " + node.name, "kmm-upgrade abort --rollback current"};
    if (run.paused && run.pause_reason == "manual") return {"kmm-upgrade step", "kmm-upgrade resume"};
    return {"kmm-upgrade resume", "kmm-upgrade abort"};
}

}  // namespace kmm::upgrade
