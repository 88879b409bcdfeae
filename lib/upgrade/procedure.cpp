// SPDX-License-Identifier: Apache-2.0
#include "upgrade/procedure.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::upgrade {

std::string_view to_string(Cause cause) noexcept {
    switch (cause) {
        case Cause::begin: return "begin";
        case Cause::finish: return "finish";
        case Cause::fail: return "fail";
        case Cause::retry: return "retry";
        case Cause::skip: return "skip";
        case Cause::observe: return "observe";
    }
    return "unknown";
}

std::string_view to_string(StateKind kind) noexcept {
    switch (kind) {
        case StateKind::resting: return "resting";
        case StateKind::transitory: return "transitory";
        case StateKind::failed: return "failed";
        case StateKind::final: return "final";
    }
    return "unknown";
}

void Procedure::add_state(Scope scope, const std::string& state, StateKind kind) {
    auto& states = scope == Scope::run ? run_states_ : node_states_;
    const auto [found, fresh] = states.emplace(state, kind);
    if (fresh || found->second == kind) return;
    // A step may end in the state it was in meanwhile (it has no name of its own for "done"): transitory wins over
    // resting, final over resting; any other pair is a contradiction.
    if (kind == StateKind::resting) return;
    if (found->second == StateKind::resting) {
        found->second = kind;
        return;
    }
    throw bug(fmt::format("procedure {}: state {} is {} and {}", parts_.name, state, to_string(found->second),
                          to_string(kind)));
}

namespace {

/// Moves of one step in one scope.
void add_step_moves(const Step& step, Scope scope, const StateChange& change, Recovery recovery,
                    std::vector<Move>& moves) {
    const auto add = [&](const std::string& from, const std::string& to, Cause cause) {
        moves.push_back(Move{scope, from, to, cause, step.name});
    };
    if (change.during.empty()) {
        for (const auto& from : change.from) add(from, change.done.empty() ? from : change.done, Cause::finish);
        return;
    }
    for (const auto& from : change.from) add(from, change.during, Cause::begin);
    if (recovery == Recovery::redo || change.failed.empty()) add(change.during, change.during, Cause::begin);
    if (!change.failed.empty() && step.retry == Retry::by_command) add(change.failed, change.during, Cause::begin);
    add(change.during, change.done.empty() ? change.during : change.done, Cause::finish);
    add(change.during, change.failed.empty() ? change.during : change.failed, Cause::fail);
}

}  // namespace

Procedure::Procedure(Parts parts) : parts_(std::move(parts)) {
    add_state(Scope::run, parts_.run_initial, StateKind::resting);
    add_state(Scope::node, parts_.node_initial, StateKind::resting);
    for (const auto& state : parts_.run_finals) add_state(Scope::run, state, StateKind::final);
    for (const auto& state : parts_.node_finals) add_state(Scope::node, state, StateKind::final);
    std::set<std::string> names;
    for (const auto& step : parts_.steps) {
        if (!names.insert(step.name).second) throw bug(fmt::format("procedure {}: two steps {}", parts_.name, step.name));
        if (!step.run && !step.node) throw bug(fmt::format("procedure {}: step {} has no states", parts_.name, step.name));
        for (const auto scope : {Scope::run, Scope::node}) {
            const auto& change = scope == Scope::run ? step.run : step.node;
            if (!change) continue;
            if (!change->during.empty()) add_state(scope, change->during, StateKind::transitory);
            if (!change->done.empty()) add_state(scope, change->done, StateKind::resting);
            if (!change->failed.empty()) add_state(scope, change->failed, StateKind::failed);
            add_step_moves(step, scope, *change, parts_.recovery, moves_);
        }
    }
    for (const auto& move : parts_.side_moves) moves_.push_back(move);
    std::sort(moves_.begin(), moves_.end());
    moves_.erase(std::unique(moves_.begin(), moves_.end()), moves_.end());
    for (const auto& move : moves_)
        if (!kind(move.scope, move.from) || !kind(move.scope, move.to))
            throw bug(fmt::format("procedure {}: move {} -> {} names an unknown state", parts_.name, move.from, move.to));
}

const Step* Procedure::find_step(std::string_view name) const noexcept {
    for (const auto& step : parts_.steps)
        if (step.name == name) return &step;
    return nullptr;
}

bool Procedure::legal(const Move& move) const { return std::binary_search(moves_.begin(), moves_.end(), move); }

std::optional<StateKind> Procedure::kind(Scope scope, std::string_view state) const {
    const auto& states = scope == Scope::run ? run_states_ : node_states_;
    const auto found = states.find(state);
    if (found == states.end()) return std::nullopt;
    return found->second;
}

std::vector<std::string> Procedure::states(Scope scope) const {
    std::vector<std::string> names;
    for (const auto& [name, kind] : scope == Scope::run ? run_states_ : node_states_) names.push_back(name);
    return names;
}

std::vector<std::string> Procedure::steps_from(Scope scope, std::string_view state) const {
    std::vector<std::string> names;
    for (const auto& step : parts_.steps) {
        const bool found = std::any_of(moves_.begin(), moves_.end(), [&](const Move& move) {
            return move.scope == scope && move.from == state && move.step == step.name &&
                   (move.cause == Cause::begin || (move.cause == Cause::finish && move.from != move.to &&
                                                   (scope == Scope::run ? step.run : step.node)->during.empty()));
        });
        if (found) names.push_back(step.name);
    }
    return names;
}

namespace {

std::string allowed_text(const Procedure& procedure, Scope scope, const std::string& state) {
    const auto names = procedure.steps_from(scope, state);
    return names.empty() ? std::string("nothing is") : base::join(names, ", ") + (names.size() == 1 ? " is" : " are");
}

/// The target of the one move of `step` with `cause` out of `from`, nullptr if the table has none. For a begin out of the
/// middle of the step itself, the redo move is found the same way.
const Move* find_move(const Procedure& procedure, Scope scope, const std::string& from, Cause cause, const Step& step) {
    for (const auto& move : procedure.moves())
        if (move.scope == scope && move.from == from && move.cause == cause && move.step == step.name) return &move;
    return nullptr;
}

Outcome change(const Procedure& procedure, const Situation& now, std::string_view step_name, std::string_view node,
               Cause cause, const FailingGuards& failing) {
    const Step* step = procedure.find_step(step_name);
    if (step == nullptr) return Refusal{"unknown-step", fmt::format("procedure {} has no step {}", procedure.name(), step_name), {}};
    Situation next = now;
    if (step->run) {
        const bool immediate = step->run->during.empty();
        const Cause wanted = immediate && cause == Cause::begin ? Cause::finish : cause;
        const Move* move = find_move(procedure, Scope::run, now.run, wanted, *step);
        const bool stays = immediate && cause == Cause::fail;
        if (move == nullptr && !stays)
            return Refusal{"illegal-move",
                           fmt::format("{} cannot {} in state {}; {} allowed", step_name, to_string(cause), now.run,
                                       allowed_text(procedure, Scope::run, now.run)),
                           {}};
        if (!stays && !(immediate && cause == Cause::begin)) next.run = move->to;
    }
    if (step->node) {
        const auto found = next.nodes.find(std::string(node));
        if (found == next.nodes.end())
            return Refusal{"unknown-node", fmt::format("{} is no node of this run", node.empty() ? "\"\"" : node), {}};
        const Move* move = find_move(procedure, Scope::node, found->second, cause, *step);
        if (move == nullptr)
            return Refusal{"illegal-move",
                           fmt::format("{} cannot {} on node {} in state {}; {} allowed", step_name, to_string(cause), node,
                                       found->second, allowed_text(procedure, Scope::node, found->second)),
                           {}};
        found->second = move->to;
    }
    Refusal refusal{"guard-failed", "", {}};
    for (const auto& guard : step->guards) {
        const auto found = failing.find(guard);
        if (found == failing.end()) continue;
        refusal.guards.push_back(guard);
        refusal.message += (refusal.message.empty() ? "" : "; ") + found->second;
    }
    if (!refusal.guards.empty()) return refusal;
    return next;
}

}  // namespace

Outcome begin(const Procedure& procedure, const Situation& now, std::string_view step, std::string_view node,
              const FailingGuards& failing) {
    return change(procedure, now, step, node, Cause::begin, failing);
}

Outcome finish(const Procedure& procedure, const Situation& now, std::string_view step, std::string_view node) {
    return change(procedure, now, step, node, Cause::finish, {});
}

Outcome fail(const Procedure& procedure, const Situation& now, std::string_view step, std::string_view node) {
    return change(procedure, now, step, node, Cause::fail, {});
}

Situation recover(const Procedure& procedure, const Situation& now) {
    Situation next = now;
    if (procedure.recovery() == Recovery::redo) return next;
    for (const auto& step : procedure.steps()) {
        if (step.run && !step.run->during.empty() && !step.run->failed.empty() && now.run == step.run->during)
            next.run = step.run->failed;
        if (!step.node || step.node->during.empty() || step.node->failed.empty()) continue;
        for (auto& [name, state] : next.nodes)
            if (state == step.node->during) state = step.node->failed;
    }
    return next;
}

}  // namespace kmm::upgrade
