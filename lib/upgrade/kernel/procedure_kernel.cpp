// SPDX-License-Identifier: Apache-2.0
// The update of the kernel, node by node. A node that runs the release already is neither emptied nor rebooted: its
// drivers are proved as on every other node.
#include "base/error.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "upgrade/engine/canary.hpp"
#include "upgrade/kernel/subject.hpp"

#include <fmt/format.h>

namespace kmm::upgrade::kernel {
namespace {

Stage walk_stage(std::string_view name, bool pauses) {
    std::vector<std::string> steps;
    for (const auto step : {k_step_check, k_step_cordon, k_step_drain, k_step_install, k_step_reboot, k_step_load,
                            k_step_validate, k_step_uncordon})
        steps.emplace_back(step);
    const auto text = std::string(name), during = "updating-" + text;
    return Stage{text,   during, "updated-" + text, during + "-failed", std::move(steps), std::string(k_node_done),
                 pauses, false};
}

Table make_table() {
    Table::Parts parts;
    parts.name = "kernel";
    parts.stages = {Stage{std::string(k_stage_pause_pools),
                          "pausing-pools",
                          "paused-pools",
                          "pausing-pools-failed",
                          {},
                          "",
                          false,
                          false},
                    walk_stage(k_stage_canary, true), walk_stage(k_stage_nodes, false),
                    Stage{std::string(k_stage_unpause_pools),
                          "unpausing-pools",
                          "unpaused-pools",
                          "unpausing-pools-failed",
                          {},
                          "",
                          false,
                          true}};
    parts.steps = {
        Step::of_node(k_step_check, {"pending"}, "checking", "checked"),
        Step::of_node(k_step_cordon, {"checked"}, "cordoning", "cordoned"),
        Step::of_node(k_step_drain, {"cordoned"}, "draining", "drained"),
        Step::of_node(k_step_install, {"checked", "drained"}, "installing", "installed"),
        Step::of_node(k_step_reboot, {"installed"}, "rebooting", "rebooted"),
        Step::of_node(k_step_load, {"checked", "rebooted"}, "loading", "loaded"),
        Step::of_node(k_step_validate, {"loaded"}, "validating", std::string(k_node_done)),
        Step::of_node(k_step_uncordon, {"validating"}, "uncordoning", std::string(k_node_done)),
    };
    std::vector<std::string> touched = {std::string(k_node_pending), std::string(k_node_done),
                                        std::string(k_node_skipped)};
    for (const auto& step : parts.steps) {
        for (const auto& state : {step.during, step.failed}) touched.push_back(state);
        if (step.done != k_node_done) touched.push_back(step.done);
    }
    parts.steps.push_back(
        Step::of_node(k_step_rollback, std::move(touched), "rolling-back", std::string(k_node_rolled_back)));
    // Where a cordon is still to be lifted, a validated node is not done.
    parts.side_moves.push_back(
        Move{Scope::node, "validating", "validating", Cause::finish, std::string(k_step_validate)});
    // At the end of a run a node that was done turns out to run another kernel.
    parts.side_moves.push_back(Move{Scope::node, "done", "validating-failed", Cause::observe, ""});
    return Table(std::move(parts));
}

const std::vector<Member> k_run_members = {{"install", MemberKind::mapping, "toVersion"}};
const std::vector<Member> k_node_members = {
    {"role", MemberKind::text, "architecture"},
    {"bootBefore", MemberKind::text, "bootID", Life::plan},
    {"rebootAsked", MemberKind::text, "bootID"},
    {"installed", MemberKind::text, "bootID"},
    {"drivers", MemberKind::mapping, "currentKnown", Life::plan},
    {"recipeDrivers", MemberKind::text, "currentKnown"},
    {"recipeContainers", MemberKind::mapping, "currentKnown", Life::plan},
};

class KernelProcedure final : public Procedure {
public:
    explicit KernelProcedure(Table table) : table_(std::move(table)) {}
    [[nodiscard]] const Table& table() const override { return table_; }
    [[nodiscard]] const std::vector<Member>& run_members() const override { return k_run_members; }
    [[nodiscard]] const std::vector<Member>& node_members() const override { return k_node_members; }

    void check(const Run& run) const override {
        require_recorded({{"toVersion", run.to_version}, {"install.command", subject_of(run).command}});
    }

    [[nodiscard]] Description describe(const Run& run) const override {
        const auto command = subject_of(run).command;
        Description description;
        description.kind = "nodes";
        description.space = "kube-system";
        description.name = "kernel";
        description.from = run.from_version.empty() ? "unknown" : run.from_version;
        description.to = run.to_version;
        description.again =
            fmt::format("kmm-upgrade start kernel --to {} --install {}", run.to_version, base::single_quoted(command));
        description.elsewhere = "kmm-upgrade start kernel --to RELEASE";
        description.commands.emplace_back("install", command);
        if (const auto pools = subject_of(run).pools; !pools.empty())
            description.notes.emplace_back(
                "pools", base::join(pools, ", ") + ": paused until the run ends, fails or is aborted");
        return description;
    }

    [[nodiscard]] std::string target_text(const Header& run, const NodeRecord& /*node*/) const override {
        return run.to_version;
    }

    [[nodiscard]] Members members(const Run& run, const Stage& stage) const override {
        if (stage.is_walk()) return canary_members(run, stage);
        Members members;
        members.is_left_out = subject_of(run).pools.empty();
        return members;
    }

    /// Control planes are updated one after the other, however many nodes may be under way.
    [[nodiscard]] bool is_held_back(const Run& run, std::size_t place) const override {
        if (!is_control_plane(run.nodes[place])) return false;
        for (std::size_t other = 0; other < run.nodes.size(); ++other) {
            const auto& node = run.nodes[other];
            if (other == place || !is_control_plane(node) || is_final_node_state(node.state)) continue;
            if (other < place || node.touched != 0) return true;
        }
        return false;
    }

    [[nodiscard]] std::string next_step(const Run& run, const NodeRecord& node, const Stage& stage) const override {
        if (!stage.is_walk()) return "";
        const auto& state = node.state;
        const auto named = [](std::string_view step) { return std::string(step); };
        if (state == k_node_pending || state == "checking") return named(k_step_check);
        if (state == "checked") {
            // Nobody has to leave a node that runs the release already.
            if (node.kernel == run.to_version) return named(k_step_load);
            return named(run.options.drain ? k_step_cordon : k_step_install);
        }
        if (state == "cordoning") return named(k_step_cordon);
        if (state == "cordoned" || state == "draining") return named(k_step_drain);
        if (state == "drained" || state == "installing") return named(k_step_install);
        if (state == "installed" || state == "rebooting") return named(k_step_reboot);
        if (state == "rebooted" || state == "loading") return named(k_step_load);
        if (state == "loaded" || (state == "validating" && node.open)) return named(k_step_validate);
        if (state == "validating" || state == "uncordoning") return named(k_step_uncordon);
        return "";
    }

    [[nodiscard]] std::string pause_note(const Run& run, const Stage& stage) const override {
        return canary_note(run, stage);
    }

private:
    Table table_;
};

}  // namespace

const Procedure& procedure_kernel() {
    static const KernelProcedure procedure(make_table());
    return procedure;
}

const Procedures& procedures() {
    static const Procedures one = {&procedure_kernel()};
    return one;
}

}  // namespace kmm::upgrade::kernel
