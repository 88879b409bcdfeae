// SPDX-License-Identifier: Apache-2.0
// The rollout of a recipe: each state in turn is applied and waited for, resources of one wave beside each other; then
// what the release no longer has is removed. The removal: each state in reverse order, then a list proves that nothing
// is left. A downgrade is a rollout that, before it applies a state with drivers, restarts these node by node, while
// nothing on the node uses them.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "upgrade/recipe/subject.hpp"

namespace kmm::upgrade::recipe {
namespace {

const std::vector<Member> k_run_members = {{"recipe", MemberKind::mapping, "toVersion"}};
const std::vector<Member> k_node_members = {{"objects", MemberKind::text, "architecture"},
                                            {"wave", MemberKind::text, "architecture"},
                                            {"driverNode", MemberKind::mapping, "architecture"}};

Stage stage_of(std::string_view name, const std::string& during, std::string done, std::vector<std::string> steps) {
    const std::string until(steps.empty() ? "" : k_node_done);
    return Stage{std::string(name), during, std::move(done), during + "-failed", std::move(steps), until, false, false};
}

Table rollout_table(bool is_downgrade) {
    Table::Parts parts;
    parts.name = is_downgrade ? "recipe-downgrade" : "recipe";
    parts.stages = {
        stage_of(k_stage_pause_pools, "pausing-pools", "paused-pools", {}),
        stage_of(k_stage_states, "rolling-out-states", "rolled-out-states",
                 {std::string(k_step_apply), std::string(k_step_gate)}),
        stage_of(k_stage_unpause_pools, "unpausing-pools", "unpaused-pools", {}),
        stage_of(k_stage_prune, "pruning", "pruned", {}),
    };
    parts.steps = {
        Step::of_node(k_step_apply, {"pending"}, "applying", "applied"),
        Step::of_node(k_step_gate, {"applied"}, "gating", k_node_done),
    };
    if (is_downgrade) {
        const std::vector<Step> on_node = {
            Step::of_node(k_step_taint, {"pending"}, "tainting", "tainted"),
            Step::of_node(k_step_evict, {"tainted"}, "evicting", "evicted"),
            Step::of_node(k_step_restart, {"evicted"}, "restarting", "restarted"),
            Step::of_node(k_step_untaint, {"restarted"}, "untainting", k_node_done),
        };
        for (const auto& step : on_node) parts.stages[1].steps.push_back(step.name);
        parts.steps.insert(parts.steps.end(), on_node.begin(), on_node.end());
    }
    std::vector<std::string> touched = {"pending", "done", "skipped"};
    for (const auto& step : parts.steps) {
        touched.insert(touched.end(), {step.during, step.failed});
        if (step.done != k_node_done) touched.push_back(step.done);
    }
    parts.steps.push_back(Step::of_node(k_step_rollback, std::move(touched), "rolling-back", k_node_rolled_back));
    // At the end of the walk a state that was ready is so no longer.
    parts.side_moves.push_back(Move{Scope::node, "done", "gating-failed", Cause::observe, ""});
    return Table(std::move(parts));
}

Table removal_table() {
    Table::Parts parts;
    parts.name = "recipe-removal";
    parts.stages = {
        stage_of(k_stage_states, "removing-states", "removed-states", {std::string(k_step_remove)}),
        stage_of(k_stage_verify, "verifying-removal", "verified-removal", {}),
    };
    parts.steps = {
        Step::of_node(k_step_remove, {"pending"}, "removing", k_node_done),
        Step::of_node(k_step_rollback, {"pending", "removing", "removing-failed", "done", "skipped"}, "rolling-back",
                   k_node_rolled_back),
    };
    return Table(std::move(parts));
}

/// Of a member RESOURCE/STATE.
std::string_view resource_of(std::string_view member) { return member.substr(0, member.find('/')); }

class RecipeProcedure final : public Procedure {
public:
    RecipeProcedure(Table table, bool is_removal) : table_(std::move(table)), is_removal_(is_removal) {}
    [[nodiscard]] const Table& table() const override { return table_; }
    [[nodiscard]] const std::vector<Member>& run_members() const override { return k_run_members; }
    [[nodiscard]] const std::vector<Member>& node_members() const override { return k_node_members; }

    void check(const Run& run) const override {
        const auto subject = subject_of(run);
        require_recorded({{"recipe.name", subject.name},
                          {"recipe.namespace", subject.space},
                          {"recipe.revision", subject.revision < 1 ? "" : "known"}});
    }

    [[nodiscard]] Description describe(const Run& run) const override {
        const auto subject = subject_of(run);
        Description description;
        description.kind = "recipe";
        description.member = "state";
        description.hold = "tainted";
        description.space = subject.space;
        description.name = subject.name;
        description.from = run.from_version.empty() ? "none" : run.from_version;
        description.to = is_removal_ ? "removed" : run.to_version;
        description.again = fmt::format("kmm-upgrade {} recipe {}", is_removal_ ? "remove" : "start", subject.name);
        description.elsewhere = fmt::format("kmm-upgrade start recipe {} --to VERSION", subject.name);
        if (!is_removal_)
            description.notes.emplace_back(
                "release", subject.previous == 0 ? fmt::format("{}", subject.revision)
                                                 : fmt::format("{}, after {}", subject.revision, subject.previous));
        if (const auto pools = subject.pools; !pools.empty())
            description.notes.emplace_back(
                "pools", base::join(pools, ", ") + ": paused until the run ends, fails or is aborted");
        return description;
    }

    [[nodiscard]] std::string target_text(const Header& run, const NodeRecord& /*node*/) const override {
        return is_removal_ ? "-" : run.to_version;
    }

    [[nodiscard]] std::pair<std::string, std::string> aspect(const Header& /*run*/,
                                                             const NodeRecord& node) const override {
        return {"OBJECTS", fmt::format("{}", objects_of(node))};
    }

    /// A state needs those before it, but for those of other resources in its wave.
    [[nodiscard]] Members members(const Run& run, const Stage& stage) const override {
        Members members;
        const bool has_waves = std::all_of(run.nodes.begin(), run.nodes.end(), wave_of);
        members.at_once = has_waves ? 0 : 1;
        members.is_left_out = stage.name != k_stage_prune && stage.name != k_stage_verify && !stage.is_walk() &&
                              subject_of(run).pools.empty();
        if (!stage.is_walk()) return members;
        for (std::size_t place = 0; place < run.nodes.size(); ++place) members.places.push_back(place);
        return members;
    }

    [[nodiscard]] bool is_held_back(const Run& run, std::size_t place) const override {
        const auto& state = run.nodes[place];
        const auto wave = wave_of(state);
        for (std::size_t other = 0; other < run.nodes.size(); ++other) {
            const auto& node = run.nodes[other];
            if (other == place || is_final_node_state(node.state)) continue;
            const bool is_needed = wave && wave_of(node)
                                       ? wave_of(node) < wave ||
                                             (other < place && resource_of(node.name) == resource_of(state.name))
                                       : other < place;
            if (is_needed) return true;
        }
        return false;
    }

    [[nodiscard]] std::string next_step(const Run& /*run*/, const NodeRecord& node, const Stage& stage) const override {
        if (!stage.is_walk()) return "";
        const auto& state = node.state;
        if (driver_node_of(node)) return next_on_node(state);
        if (is_removal_) return state == k_node_pending || state == "removing" ? std::string(k_step_remove) : "";
        if (state == k_node_pending || state == "applying") return std::string(k_step_apply);
        if (state == "applied" || state == "gating") return std::string(k_step_gate);
        return "";
    }

    [[nodiscard]] std::string skip_refusal(const Run& /*run*/, const NodeRecord& node) const override {
        if (driver_node_of(node)) return "its drivers would be restarted while they are in use";
        return is_removal_ ? "its objects would be left" : "the states after it need it";
    }

    [[nodiscard]] std::string pause_note(const Run& /*run*/, const Stage& stage) const override {
        return stage.name + " is done";
    }

private:
    [[nodiscard]] static std::string next_on_node(const std::string& state) {
        if (state == k_node_pending || state == "tainting") return std::string(k_step_taint);
        if (state == "tainted" || state == "evicting") return std::string(k_step_evict);
        if (state == "evicted" || state == "restarting") return std::string(k_step_restart);
        if (state == "restarted" || state == "untainting") return std::string(k_step_untaint);
        return "";
    }
    Table table_;
    bool is_removal_;
};

}  // namespace

const Procedure& procedure_rollout() {
    static const RecipeProcedure procedure(rollout_table(false), false);
    return procedure;
}

const Procedure& procedure_downgrade() {
    static const RecipeProcedure procedure(rollout_table(true), false);
    return procedure;
}

const Procedure& procedure_removal() {
    static const RecipeProcedure procedure(removal_table(), true);
    return procedure;
}

const Procedures& procedures() {
    static const Procedures all = {&procedure_rollout(), &procedure_downgrade(), &procedure_removal()};
    return all;
}

bool is_removal(const Header& run) { return run.rules == &procedure_removal(); }

}  // namespace kmm::upgrade::recipe
