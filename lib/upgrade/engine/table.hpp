// SPDX-License-Identifier: Apache-2.0
// The table of one procedure: its stages, the steps of a node, and the moves between states that follow from them.
// Immutable data; the only place that knows what may follow what. Everything that changes a state asks it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::upgrade {

/// States of a run that every procedure has.
inline constexpr std::string_view k_run_started = "upgrade-started", k_run_complete = "upgrade-complete",
                                  k_run_aborting = "upgrade-aborting",
                                  k_run_aborting_failed = "upgrade-aborting-failed", k_run_aborted = "upgrade-aborted";
/// States of a node that every procedure has: before the first step, and the three that nothing but a rollback follows.
inline constexpr std::string_view k_node_pending = "pending", k_node_done = "done", k_node_skipped = "skipped",
                                  k_node_rolled_back = "rolled-back";
/// Steps that every procedure has: two of the run, and the way back of a node.
inline constexpr std::string_view k_step_complete = "complete", k_step_abort = "abort", k_step_rollback = "rollback";
/// Steps of a node in procedures that empty it. They do nothing on the node itself.
inline constexpr std::string_view k_step_cordon = "cordon", k_step_drain = "drain", k_step_uncordon = "uncordon";

/// Stages, steps of the run, of procedures that keep the machines' own updates off.
inline constexpr std::string_view k_stage_pause_pools = "pause-pools", k_stage_unpause_pools = "unpause-pools";

/// Whose state a step or move changes.
enum class Scope { run, node };

/// `resting`: nothing is under way; `transitory`: a step is under way (its outcome is unknown after a crash);
/// `failed`: the step ended badly, the name ends in "-failed"; `final`: nothing follows except a rollback or a removal
/// of the record, and for a done node what the last look of the run finds.
enum class StateKind { resting, transitory, failed, final };

/// What makes a state change.
///   begin    an intent was recorded, the step starts       finish  the step was carried out and verified
///   fail     the step ended badly                          retry   a person sends a failed node back
///   skip     a person leaves a failed node out             observe a look at the node changed its plan
enum class Cause { begin, finish, fail, retry, skip, observe };

/// "begin", "finish", ...
[[nodiscard]] std::string_view to_string(Cause cause) noexcept;
[[nodiscard]] std::string_view to_string(StateKind kind) noexcept;

/// A step and the states it passes through. `during` "": it is immediate. `done` or `failed` "": the state stays what
/// it was under way.
struct Step {
    std::string name;
    Scope scope = Scope::node;
    std::vector<std::string> from;  ///< states it may begin in, apart from `during` (redo) and `failed` (again)
    std::string during, done, failed;

    /// Of a node, with `during` and "-failed" for `failed`.
    [[nodiscard]] static Step of_node(std::string_view name, std::vector<std::string> from, std::string during,
                                      std::string_view done);
};

/// A part of a run: a walk of nodes through steps, or one step of the run itself. It follows any stage before it whose
/// `done` the run has.
struct Stage {
    std::string name;
    std::string during, done, failed;  ///< states of the run
    std::vector<std::string> steps;    ///< steps of a node that it walks; empty: it is a step of the run itself
    std::string until;  ///< state in which a node is through: k_node_done, or one in which it rests until a later stage
    bool pauses = false;               ///< once it is done, a person lets the run go on
    bool is_optional = false;          ///< at the end: a run may be complete without it
    [[nodiscard]] bool is_walk() const noexcept { return !steps.empty(); }
};

/// One legal change. `step` is "" for moves that belong to no step.
struct Move {
    Scope scope = Scope::node;
    std::string from, to;
    Cause cause = Cause::begin;
    std::string step;
    friend auto operator<=>(const Move&, const Move&) = default;
};

/// An immutable table. States and moves are derived from its parts once.
class Table {
public:
    struct Parts {
        std::string name;              ///< of the procedure, as records spell it
        std::vector<Stage>
            stages;  ///< in order; the last one that is not optional is never left out, and leads to k_run_complete
        std::vector<Step> steps;       ///< of a node, in the order of a walk
        std::vector<Move> side_moves;  ///< moves that follow from no stage or step
    };
    /// Throws a bug if a state plays two roles, a step has no states, a name is used twice, or a stage names an unknown
    /// step or state.
    explicit Table(Parts parts);

    [[nodiscard]] const std::string& name() const noexcept { return parts_.name; }
    [[nodiscard]] const std::vector<Stage>& stages() const noexcept { return parts_.stages; }
    /// nullptr if there is none of that name.
    [[nodiscard]] const Stage* find_stage(std::string_view name) const noexcept;
    /// The stage that has `state` as one of its states of the run; nullptr for states of no stage.
    [[nodiscard]] const Stage* stage_of(std::string_view state) const noexcept;
    /// Steps of the run, one a stage, then those of a node, then complete and abort.
    [[nodiscard]] const std::vector<Step>& steps() const noexcept { return steps_; }
    /// nullptr if there is none of that name.
    [[nodiscard]] const Step* find_step(std::string_view name) const noexcept;
    /// All legal moves, sorted, without duplicates.
    [[nodiscard]] const std::vector<Move>& moves() const noexcept { return moves_; }
    /// True if the table has exactly that move. O(log moves).
    [[nodiscard]] bool legal(const Move& move) const;
    /// nullopt for a name that is not a state of that scope.
    [[nodiscard]] std::optional<StateKind> kind(Scope scope, std::string_view state) const;
    /// True for a state in which a node rests between two stages.
    [[nodiscard]] bool is_rest(std::string_view state) const noexcept;
    /// Every state of a scope, sorted by name.
    [[nodiscard]] std::vector<std::string> states(Scope scope) const;

private:
    void add_state(Scope scope, const std::string& state, StateKind kind);
    void add_step(const Step& step);
    /// Moves that every procedure has: retry, skip, looks, and nodes that are planned again.
    void add_common_moves();
    void check_stages() const;
    Parts parts_;
    std::vector<Step> steps_;
    std::vector<std::string> rests_;
    std::vector<Move> moves_;
    std::map<std::string, StateKind, std::less<>> run_states_, node_states_;
};

}  // namespace kmm::upgrade
