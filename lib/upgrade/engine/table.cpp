// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/table.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"

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

void Table::add_state(Scope scope, const std::string& state, StateKind kind) {
    if ((kind == StateKind::failed) != state.ends_with("-failed"))
        throw bug(fmt::format("procedure {}: state {} is {}", parts_.name, state, to_string(kind)));
    auto& states = scope == Scope::run ? run_states_ : node_states_;
    const auto [found, fresh] = states.emplace(state, kind);
    if (fresh || found->second == kind) return;
    // A step may end in the state it was in under way (it has no name of its own for "done"): transitory wins over
    // resting, final over resting; any other pair is a contradiction.
    if (kind == StateKind::resting) return;
    if (found->second == StateKind::resting) {
        found->second = kind;
        return;
    }
    throw bug(fmt::format("procedure {}: state {} is {} and {}", parts_.name, state, to_string(found->second),
                          to_string(kind)));
}

void Table::add_step(const Step& step) {
    if (find_step(step.name) != nullptr) throw bug(fmt::format("procedure {}: two steps {}", parts_.name, step.name));
    if (step.during.empty() && step.done.empty())
        throw bug(fmt::format("procedure {}: step {} has no states", parts_.name, step.name));
    if (!step.during.empty()) add_state(step.scope, step.during, StateKind::transitory);
    if (!step.done.empty()) add_state(step.scope, step.done, StateKind::resting);
    if (!step.failed.empty()) add_state(step.scope, step.failed, StateKind::failed);
    const auto add = [&](const std::string& from, const std::string& to, Cause cause) {
        moves_.push_back(Move{step.scope, from, to, cause, step.name});
    };
    steps_.push_back(step);
    if (step.during.empty()) {
        for (const auto& from : step.from) add(from, step.done, Cause::finish);
        return;
    }
    for (const auto& from : step.from) add(from, step.during, Cause::begin);
    add(step.during, step.during, Cause::begin);
    if (!step.failed.empty()) add(step.failed, step.during, Cause::begin);
    add(step.during, step.done.empty() ? step.during : step.done, Cause::finish);
    add(step.during, step.failed.empty() ? step.during : step.failed, Cause::fail);
}

void Table::add_common_moves() {
    std::vector<std::string> starts = rests_;  // where a node may be planned again from
    starts.emplace_back(k_node_pending);
    const std::string back(find_step(k_step_rollback) == nullptr ? "" : find_step(k_step_rollback)->during);
    for (const auto& [state, kind] : node_states_) {
        const auto side = [&, &from = state](std::string_view to, Cause cause) {
            moves_.push_back(Move{Scope::node, from, std::string(to), cause, ""});
        };
        side(state, Cause::observe);
        const bool is_back = !back.empty() && state.starts_with(back);
        if (kind == StateKind::failed) {
            for (const auto& start : starts) side(start, Cause::retry);
            if (!is_back) side(k_node_skipped, Cause::skip);
        } else if (kind != StateKind::final && !is_back && state != k_node_pending && !is_rest(state)) {
            for (const auto& start : starts) side(start, Cause::observe);
        }
    }
}

void Table::check_stages() const {
    if (parts_.stages.empty()) throw bug(fmt::format("procedure {} has no stages", parts_.name));
    for (const auto& stage : parts_.stages) {
        for (const auto& name : stage.steps)
            if (const auto* step = find_step(name); step == nullptr || step->scope != Scope::node)
                throw bug(fmt::format("procedure {}: stage {} walks {}, which is not a step of a node", parts_.name,
                                      stage.name, name));
        if (stage.is_walk() != kind(Scope::node, stage.until).has_value())
            throw bug(fmt::format("procedure {}: stage {} ends at nodes in state \"{}\"", parts_.name, stage.name,
                                  stage.until));
    }
}

Step Step::of_node(std::string_view name, std::vector<std::string> from, std::string during, std::string_view done) {
    auto failed = during + "-failed";
    return Step{std::string(name), Scope::node,       std::move(from),
                std::move(during), std::string(done), std::move(failed)};
}

Table::Table(Parts parts) : parts_(std::move(parts)) {
    add_state(Scope::run, std::string(k_run_started), StateKind::resting);
    add_state(Scope::node, std::string(k_node_pending), StateKind::resting);
    for (const auto state : {k_run_complete, k_run_aborted})
        add_state(Scope::run, std::string(state), StateKind::final);
    for (const auto state : {k_node_done, k_node_skipped, k_node_rolled_back})
        add_state(Scope::node, std::string(state), StateKind::final);
    std::vector<std::string> before = {std::string(k_run_started)}, abortable = before;
    for (const auto& stage : parts_.stages) {
        add_step(Step{stage.name, Scope::run, before, stage.during, stage.done, stage.failed});
        before.push_back(stage.done);
        abortable.insert(abortable.end(), {stage.during, stage.failed, stage.done});
        if (stage.is_walk() && stage.until != k_node_done) rests_.push_back(stage.until);
        // Nodes that were done may turn out to be so no more before the run is complete.
        if (stage.is_walk() && stage.until == k_node_done)
            moves_.push_back(Move{Scope::run, stage.done, stage.failed, Cause::fail, stage.name});
    }
    for (const auto& step : parts_.steps) add_step(step);
    std::vector<std::string> ends;
    for (auto stage = parts_.stages.rbegin(); stage != parts_.stages.rend(); ++stage) {
        ends.push_back(stage->done);
        if (!stage->is_optional) break;
    }
    add_step(Step{std::string(k_step_complete), Scope::run, std::move(ends), "", std::string(k_run_complete), ""});
    add_step(Step{std::string(k_step_abort), Scope::run, abortable, std::string(k_run_aborting),
                  std::string(k_run_aborted), std::string(k_run_aborting_failed)});
    check_stages();
    add_common_moves();
    for (const auto& move : parts_.side_moves) moves_.push_back(move);
    std::sort(moves_.begin(), moves_.end());
    moves_.erase(std::unique(moves_.begin(), moves_.end()), moves_.end());
    for (const auto& move : moves_)
        if (!kind(move.scope, move.from) || !kind(move.scope, move.to))
            throw bug(
                fmt::format("procedure {}: move {} -> {} names an unknown state", parts_.name, move.from, move.to));
}

const Stage* Table::find_stage(std::string_view name) const noexcept {
    for (const auto& stage : parts_.stages)
        if (stage.name == name) return &stage;
    return nullptr;
}

const Stage* Table::stage_of(std::string_view state) const noexcept {
    for (const auto& stage : parts_.stages)
        if (stage.during == state || stage.done == state || stage.failed == state) return &stage;
    return nullptr;
}

const Step* Table::find_step(std::string_view name) const noexcept {
    for (const auto& step : steps_)
        if (step.name == name) return &step;
    return nullptr;
}

bool Table::legal(const Move& move) const { return std::binary_search(moves_.begin(), moves_.end(), move); }

bool Table::is_rest(std::string_view state) const noexcept {
    return std::find(rests_.begin(), rests_.end(), state) != rests_.end();
}

std::optional<StateKind> Table::kind(Scope scope, std::string_view state) const {
    const auto& states = scope == Scope::run ? run_states_ : node_states_;
    const auto found = states.find(state);
    if (found == states.end()) return std::nullopt;
    return found->second;
}

std::vector<std::string> Table::states(Scope scope) const {
    std::vector<std::string> names;
    for (const auto& [name, kind] : scope == Scope::run ? run_states_ : node_states_) names.push_back(name);
    return names;
}

}  // namespace kmm::upgrade
