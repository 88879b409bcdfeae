// SPDX-License-Identifier: Apache-2.0
// What comes next in a run. Pure: the driver asks, carries out, records, and asks again.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "upgrade/engine/event.hpp"
#include "upgrade/engine/node_index.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade {

struct NodeStep {
    std::string node, step;  ///< node "": a stage that is a step of the run itself
    friend bool operator==(const NodeStep&, const NodeStep&) = default;
};

/// Lifting the cordon of a node that was skipped, or whose run is aborted. No step of the procedure: it leaves the
/// node's state as it is, and is recorded as a look.
inline constexpr std::string_view k_step_release = "release";

/// The reason of a pause in the state that RunState::until names.
inline constexpr std::string_view k_pause_until = "until";
/// A step of the run itself has failed; why is in the step_... members of Run.
inline constexpr std::string_view k_pause_step_failed = "step-failed";

/// `steps`: begin these node steps now. `move`: record this event of the run. `pause`: record the pause and stop.
/// `wait`: nothing can begin until a step that is in flight ends. `finished`: the run is in a final state.
enum class Next { steps, move, pause, wait, finished };

struct Decision {
    Next next = Next::finished;
    std::vector<NodeStep> steps;
    Event event;  ///< of `move` and `pause`
};

/// `in_flight` are the nodes a step is being carried out on right now. Rules:
///   - at most options.max_unavailable nodes, or fewer where the stage says so, are between pending and a final state
///   (P32);
///   - while more nodes are failed than the failure budget, of which canaries have none, no other node is begun, those
///   begun
///     go on to their end, then the run pauses; failed nodes within the budget do not count as between pending and
///     final;
///   - in the order "zone" a zone is begun when every node of the zone before is final or failed;
///   - canary and pause-after are counted in nodes that became final; skipped ones count;
///   - a cordon of this run is lifted before its node's part in the run ends, whatever ended it;
///   - once an abort was begun, nodes that Rollback selects are rolled back one at a time, by Procedure::rollback_rank.
/// O(nodes) without an index of `run`; with one that has been told of every change it costs the same in a run of any
/// size, but for aborts, stops and the order "zone".
[[nodiscard]] Decision next_steps(const Run& run, const std::set<std::string>& in_flight);
[[nodiscard]] Decision next_steps(const Run& run, const std::set<std::string>& in_flight, const NodeIndex& index);

/// True for a node that was begun, and is neither final nor at rest between two stages.
[[nodiscard]] bool is_active_node(const Header& run, const NodeRecord& node);
/// Nodes that are active.
[[nodiscard]] std::vector<std::string> active_nodes(const Run& run);
/// Those of them that count towards options.max_unavailable: failed nodes only without a failure budget.
[[nodiscard]] std::vector<std::string> busy_nodes(const Run& run);
/// Nodes an abort with `rollback` still has to roll back, in the order it does so.
[[nodiscard]] std::vector<std::string> rollback_nodes(const Run& run, Rollback rollback);

struct Counts {
    std::size_t total = 0, done = 0, failed = 0, skipped = 0, active = 0, pending = 0, rolled_back = 0;
};
[[nodiscard]] Counts count(const Run& run);

/// True for a run that stopped because only failed nodes, within the failure budget, are left.
[[nodiscard]] bool is_through(const Run& run);

/// Nodes that this run has cordoned and not yet uncordoned, in walk order.
[[nodiscard]] std::vector<std::string> cordoned_nodes(const Run& run);

/// "; still cordoned: node-a, node-b" of those nodes, "" without any: what every pause ends with.
[[nodiscard]] std::string cordon_note(const Run& run);

/// "NODE: REASON" of a failed node, which the pause "node-failed" says.
[[nodiscard]] std::string failed_note(const NodeRecord& node);

/// Why `run` stops before `move` instead of making it: it is in the state RunState::until, or the stage of that state
/// is left out and no run that follows has it. "" for no stop.
[[nodiscard]] std::string until_note(const Run& run, const Event& move);
/// What keeps `state` from being one in which `run` can still stop, "" for nothing.
[[nodiscard]] std::string until_problem(const Run& run, const std::string& state);

/// The command that goes on from here, then the other sensible ones; never empty.
[[nodiscard]] std::vector<std::string> next_commands(const Run& run);

}  // namespace kmm::upgrade
