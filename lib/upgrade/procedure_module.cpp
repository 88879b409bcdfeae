// SPDX-License-Identifier: Apache-2.0
// Cordon, drain and uncordon are walked by runs that drain nodes, and only by those.
#include <algorithm>

#include <fmt/format.h>

#include "upgrade/procedure.hpp"
#include "upgrade/run.hpp"

namespace kmm::upgrade {
namespace {

/// Every state between pending and a final one, without the failed ones.
const std::vector<std::string> k_middle = {"checking", "cordoning", "cordoned", "draining",   "drained",    "unloading",
                                           "unloaded", "loading",   "loaded",   "validating", "uncordoning"};

Step node_step(std::string name, std::vector<std::string> from, std::string during, std::string done) {
    auto failed = during + "-failed";
    return Step{std::move(name), Scope::node, std::move(from), std::move(during), std::move(done), std::move(failed)};
}

Table make_table(std::string name, std::vector<std::string> validated_from) {
    Table::Parts parts;
    parts.name = std::move(name);
    const std::vector<std::string> walk = {"check", "cordon", "drain", "unload", "load", "validate", "uncordon"};
    parts.stages = {{"canary", "upgrading-canary", "upgraded-canary", "upgrading-canary-failed", walk, std::string(k_node_done), true},
                    {"nodes", "upgrading-nodes", "upgraded-nodes", "upgrading-nodes-failed", walk, std::string(k_node_done), false}};
    auto touched = k_middle;
    touched.insert(touched.end(), {"checking-failed", "cordoning-failed", "draining-failed", "unloading-failed", "loading-failed",
                                   "validating-failed", "uncordoning-failed", "pending", "done", "skipped"});
    parts.steps = {
        node_step("check", {"pending"}, "checking", "checking"),
        node_step("cordon", {"checking"}, "cordoning", "cordoned"),
        node_step("drain", {"cordoned"}, "draining", "drained"),
        node_step("unload", {"checking", "drained"}, "unloading", "unloaded"),
        node_step("load", {"checking", "drained", "unloaded"}, "loading", "loaded"),
        node_step("validate", std::move(validated_from), "validating", "done"),
        node_step("uncordon", {"validating"}, "uncordoning", "done"),
        node_step(std::string(k_step_rollback), std::move(touched), "rolling-back", "rolled-back"),
    };
    // Where a cordon is still to be lifted, a validated node is not done.
    parts.side_moves.push_back(Move{Scope::node, "validating", "validating", Cause::finish, "validate"});
    // At the end of a run a node that was done turns out to have been changed by somebody else.
    parts.side_moves.push_back(Move{Scope::node, "done", "validating-failed", Cause::observe, ""});
    return Table(std::move(parts));
}

class ModuleProcedure final : public Procedure {
public:
    explicit ModuleProcedure(Table table) : table_(std::move(table)) {}
    [[nodiscard]] const Table& table() const override { return table_; }

    [[nodiscard]] Members members(const Run& run, const Stage& stage) const override {
        Members members;
        const bool is_canary = stage.name == "canary";
        if (is_canary && (run.options.canary <= 0 || run.options.canary >= static_cast<std::int64_t>(run.nodes.size()))) {
            members.is_left_out = true;
            return members;
        }
        members.places.resize(is_canary ? static_cast<std::size_t>(run.options.canary) : run.nodes.size());
        for (std::size_t place = 0; place < members.places.size(); ++place) members.places[place] = place;
        if (!is_canary) members.failure_budget = run.options.failure_budget;
        return members;
    }

    [[nodiscard]] std::string next_step(const Run& run, const NodeRecord& node, const Stage& /*stage*/) const override {
        const auto& state = node.state;
        if (state == k_node_pending) return "check";
        if (state == "checking") {
            if (node.open || node.next.empty()) return "check";
            // Nobody has to leave a node on which nothing is left to change.
            return run.options.drain && node.next != "validate" ? "cordon" : node.next;
        }
        if (state == "cordoning") return "cordon";
        if (state == "cordoned" || state == "draining") return "drain";
        if (state == "drained") return node.next;
        if (state == "unloading") return "unload";
        if (state == "unloaded" && node.goal == k_goal_absent) return "validate";
        if (state == "unloaded" || state == "loading") return "load";
        if (state == "loaded" || (state == "validating" && node.open)) return "validate";
        if (state == "validating" || state == "uncordoning") return "uncordon";
        return "";
    }

    [[nodiscard]] std::string restart_state(const Run& /*run*/, const NodeRecord& /*node*/) const override { return std::string(k_node_pending); }

    /// How the canaries have ended.
    [[nodiscard]] std::string pause_note(const Run& run, const Stage& stage) const override {
        const auto places = members(run, stage).places;
        const auto canaries = places.size();
        const auto first = canaries == 1 ? std::string("first node") : fmt::format("first {} nodes", canaries);
        const auto done = static_cast<std::size_t>(
            std::count_if(places.begin(), places.end(), [&](std::size_t place) { return run.nodes[place].state == k_node_done; }));
        if (done == canaries) return fmt::format("the {} {} done, as --canary asks", first, canaries == 1 ? "is" : "are");
        if (done == 0)
            return fmt::format("the {} {} skipped: no canary is done, resume goes on with the others all the same", first,
                               canaries == 1 ? "was" : "were");
        return fmt::format("{} of the {} {} done, {} skipped, as --canary asks", done, first, done == 1 ? "is" : "are", canaries - done);
    }

private:
    Table table_;
};

}  // namespace

const Procedure& procedure_module() {
    static const ModuleProcedure procedure(make_table("module", {"checking", "loaded"}));
    return procedure;
}

const Procedure& procedure_apply() {
    static const ModuleProcedure procedure(make_table("apply", {"checking", "unloaded", "loaded"}));
    return procedure;
}

const Procedures& released_procedures() {
    static const Procedures procedures = {&procedure_module(), &procedure_apply()};
    return procedures;
}

}  // namespace kmm::upgrade
