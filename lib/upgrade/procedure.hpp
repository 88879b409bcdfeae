// SPDX-License-Identifier: Apache-2.0
// A procedure is data: ordered steps with the states they pass through, their guards, action and verification. The moves
// derived from that data are the one table of what may follow what; everything that changes a state asks it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kmm::upgrade {

/// Whose state a step or move is about.
enum class Scope { run, node };

/// `resting`: nothing is under way; `transitory`: a step is under way (its outcome is unknown after a crash);
/// `failed`: the step ended badly; `final`: nothing follows except a rollback or a removal of the record, and for a done node what
/// the last look of the run finds.
enum class StateKind { resting, transitory, failed, final };

/// What makes a state change.
///   begin    an intent was recorded, the step starts       finish  the step was carried out and verified
///   fail     the step ended badly                          retry   a person sends a failed node back to the start
///   skip     a person gives a failed node up               observe a look at the node made the plan anew
enum class Cause { begin, finish, fail, retry, skip, observe };

/// "begin", "finish", ...
[[nodiscard]] std::string_view to_string(Cause cause) noexcept;
[[nodiscard]] std::string_view to_string(StateKind kind) noexcept;

/// The states one step passes through in one scope. `during` "" : the step is immediate. `done` or `failed` "": the state
/// stays what it was meanwhile.
struct StateChange {
    std::vector<std::string> from;  ///< states the step may begin in, apart from `during` (redo) and `failed` (again)
    std::string during, done, failed;
};

/// Who may repeat a failed step.
enum class Retry { never, by_command };
/// Whether this release carries the step out, or only knows it.
enum class Walk { released, later };

struct Step {
    std::string name;
    Scope scope = Scope::node;          ///< run: once; node: once per node
    std::optional<StateChange> run;     ///< effect on the run's state, if any
    std::optional<StateChange> node;    ///< effect on the node's state, if any
    std::vector<std::string> guards;    ///< names, in the order they are evaluated and reported
    std::string action;                 ///< name of what is done
    std::string verification;           ///< name of what proves it, "" if the action's own result is the proof
    Retry retry = Retry::by_command;
    Walk walk = Walk::released;
};

/// What a restart makes of a step that was cut off: `redo` it after a look at the cluster (its actions are idempotent), or
/// call it failed, so that a person begins it again.
enum class Recovery { redo, to_failed };

/// One legal change. `step` is "" for moves that belong to no step.
struct Move {
    Scope scope = Scope::node;
    std::string from, to;
    Cause cause = Cause::begin;
    std::string step;
    friend auto operator<=>(const Move&, const Move&) = default;
};

/// An immutable procedure. States and moves are derived from the steps once.
class Procedure {
public:
    struct Parts {
        std::string name;
        std::string run_initial, node_initial;
        std::vector<Step> steps;       ///< in the order of a walk
        std::vector<Move> side_moves;  ///< moves that no step's states say: retry, skip, observe, another end of a step
        std::vector<std::string> run_finals, node_finals;
        Recovery recovery = Recovery::redo;
    };
    /// Throws a bug if a state plays two roles, a step has no states, or a name is used twice.
    explicit Procedure(Parts parts);

    [[nodiscard]] const std::string& name() const noexcept { return parts_.name; }
    [[nodiscard]] const std::string& run_initial() const noexcept { return parts_.run_initial; }
    [[nodiscard]] const std::string& node_initial() const noexcept { return parts_.node_initial; }
    [[nodiscard]] Recovery recovery() const noexcept { return parts_.recovery; }
    [[nodiscard]] const std::vector<Step>& steps() const noexcept { return parts_.steps; }
    /// nullptr if there is none of that name.
    [[nodiscard]] const Step* find_step(std::string_view name) const noexcept;
    /// All legal moves, sorted, without duplicates.
    [[nodiscard]] const std::vector<Move>& moves() const noexcept { return moves_; }
    /// True if the table has exactly that move. O(log moves).
    [[nodiscard]] bool legal(const Move& move) const;
    /// nullopt for a name that is no state of that scope.
    [[nodiscard]] std::optional<StateKind> kind(Scope scope, std::string_view state) const;
    /// Every state of a scope, sorted by name.
    [[nodiscard]] std::vector<std::string> states(Scope scope) const;
    /// Names of steps that may begin in `state` of `scope`, in walk order.
    [[nodiscard]] std::vector<std::string> steps_from(Scope scope, std::string_view state) const;

private:
    void add_state(Scope scope, const std::string& state, StateKind kind);
    Parts parts_;
    std::vector<Move> moves_;
    std::map<std::string, StateKind, std::less<>> run_states_, node_states_;
};

/// States of the run and of each node.
struct Situation {
    std::string run;
    std::map<std::string, std::string> nodes;
    friend bool operator==(const Situation&, const Situation&) = default;
};

/// Guards that do not hold: name -> why, for people. Evaluating them is the caller's business.
using FailingGuards = std::map<std::string, std::string>;

/// Why a command changes nothing. Every failing guard is listed, in the step's order.
struct Refusal {
    std::string code;     ///< "unknown-step", "unknown-node", "illegal-move" or "guard-failed"
    std::string message;  ///< names the state and what would be allowed in it
    std::vector<std::string> guards;
    friend bool operator==(const Refusal&, const Refusal&) = default;
};

using Outcome = std::variant<Situation, Refusal>;

/// The transition function. `node` is "" for steps of scope run. `begin` looks at `failing` (only guards the step names
/// count); `finish` and `fail` need the step to be under way, or immediate and allowed.
[[nodiscard]] Outcome begin(const Procedure& procedure, const Situation& now, std::string_view step, std::string_view node,
                            const FailingGuards& failing = {});
[[nodiscard]] Outcome finish(const Procedure& procedure, const Situation& now, std::string_view step, std::string_view node);
[[nodiscard]] Outcome fail(const Procedure& procedure, const Situation& now, std::string_view step, std::string_view node);
/// What a restart makes of a situation that was cut off. With Recovery::redo nothing changes; with to_failed every
/// transitory state that has a failed twin becomes that twin (facts StarlingX 8: it could never progress by itself).
[[nodiscard]] Situation recover(const Procedure& procedure, const Situation& now);

/// The ordered upgrade of one module: facts KMM 8.2, states of the command line page, section 3.
[[nodiscard]] const Procedure& procedure_module();
/// Bringing nodes to what the plan says: as procedure_module, and a node may end with the module unloaded. The states, and what
/// each step does to them, are the same.
[[nodiscard]] const Procedure& procedure_apply();
/// The Kubernetes upgrade of StarlingX, first code: facts StarlingX 1.1 and 1.5. Data only: its actions are not released.
[[nodiscard]] const Procedure& procedure_starlingx();

}  // namespace kmm::upgrade
