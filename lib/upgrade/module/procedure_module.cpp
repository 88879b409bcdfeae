// SPDX-License-Identifier: Apache-2.0
// Cordon, drain and uncordon are walked by runs that drain nodes, and only by those.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "upgrade/engine/canary.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::upgrade::module {
namespace {

/// Every state between pending and a final one, without the failed ones.
const std::vector<std::string> k_middle = {"checking", "cordoning", "cordoned", "draining",   "drained",    "unloading",
                                           "unloaded", "loading",   "loaded",   "validating", "uncordoning"};

Table make_table(std::string name, std::vector<std::string> validated_from) {
    Table::Parts parts;
    parts.name = std::move(name);
    const std::vector<std::string> walk = {"check", "cordon", "drain", "unload", "load", "validate", "uncordon"};
    parts.stages = {{std::string(k_stage_canary), "upgrading-canary", "upgraded-canary", "upgrading-canary-failed",
                     walk, std::string(k_node_done), true},
                    {std::string(k_stage_nodes), "upgrading-nodes", "upgraded-nodes", "upgrading-nodes-failed", walk,
                     std::string(k_node_done), false}};
    auto touched = k_middle;
    touched.insert(touched.end(),
                   {"checking-failed", "cordoning-failed", "draining-failed", "unloading-failed", "loading-failed",
                    "validating-failed", "uncordoning-failed", "pending", "done", "skipped"});
    parts.steps = {
        Step::of_node("check", {"pending"}, "checking", "checking"),
        Step::of_node(k_step_cordon, {"checking"}, "cordoning", "cordoned"),
        Step::of_node(k_step_drain, {"cordoned"}, "draining", "drained"),
        Step::of_node("unload", {"checking", "drained"}, "unloading", "unloaded"),
        Step::of_node("load", {"checking", "drained", "unloaded"}, "loading", "loaded"),
        Step::of_node("validate", std::move(validated_from), "validating", "done"),
        Step::of_node(k_step_uncordon, {"validating"}, "uncordoning", "done"),
        Step::of_node(std::string(k_step_rollback), std::move(touched), "rolling-back", "rolled-back"),
    };
    // Where a cordon is still to be lifted, a validated node is not done.
    parts.side_moves.push_back(Move{Scope::node, "validating", "validating", Cause::finish, "validate"});
    // At the end of a run a node that was done turns out to have been changed by somebody else.
    parts.side_moves.push_back(Move{Scope::node, "done", "validating-failed", Cause::observe, ""});
    return Table(std::move(parts));
}

const std::vector<Member> k_run_members = {
    {"createdDefinitions", MemberKind::text, "toolVersion"},
    {"moduleNamespace", MemberKind::text, "adopted"},
    {"moduleName", MemberKind::text, "adopted"},
    {"kernelModule", MemberKind::text, "adopted"},
    {"restModules", MemberKind::text, "toVersion"},
    {"restNodes", MemberKind::text, "toVersion"},
    {"restSelector", MemberKind::text, "toVersion"},
    {"restShare", MemberKind::text, "toVersion"},
};
const std::vector<Member> k_node_members = {
    {"next", MemberKind::text, "architecture", Life::plan},
    {"goal", MemberKind::text, "architecture"},
    {"fromEntry", MemberKind::document, "fromVersion"},
    {"fromIdentity", MemberKind::mapping, "fromVersion"},
    {"fromLabels", MemberKind::document, "fromVersion"},
    {"targetImage", MemberKind::text, "fromVersion"},
    {"targetDigest", MemberKind::text, "fromVersion"},
    {"targetEntry", MemberKind::document, "fromVersion"},
    {"targetIdentity", MemberKind::mapping, "fromVersion"},
    {"live", MemberKind::mapping, "currentKnown"},
    {"kernelLine", MemberKind::text, "message", Life::outcome},
};

std::string version_text(const std::string& version) { return version.empty() ? "unversioned" : version; }

/// Nodes that had the module before the run, should have it and are known to have nothing.
std::vector<std::string> nodes_without(const Run& run) {
    std::vector<std::string> names;
    for (const auto& node : run.nodes) {
        const bool had_it = !node.from_version.empty() || (!node.facts.is_null() && node.facts.find("fromEntry"));
        if (had_it && node.current_known && node.current_version.empty() && !goes_away(node))
            names.push_back(node.name);
    }
    return names;
}

class ModuleProcedure final : public Procedure {
public:
    explicit ModuleProcedure(Table table) : table_(std::move(table)) {}
    [[nodiscard]] const Table& table() const override { return table_; }
    [[nodiscard]] const std::vector<Member>& run_members() const override { return k_run_members; }
    [[nodiscard]] const std::vector<Member>& node_members() const override { return k_node_members; }

    void check(const Run& run) const override {
        const auto subject = subject_of(run);
        require_recorded({{"moduleName", subject.name}, {"toVersion", is_apply(run) ? "any" : run.to_version}});
    }

    [[nodiscard]] Description describe(const Run& run) const override {
        const auto subject = subject_of(run);
        const bool is_removal =
            is_apply(run) && !run.nodes.empty() && std::all_of(run.nodes.begin(), run.nodes.end(), goes_away);
        Description description;
        description.kind = "module";
        description.space = subject.ns;
        description.name = subject.name;
        description.from = run.from_version.empty() ? "none" : run.from_version;
        description.to = is_removal ? "removed" : version_text(run.to_version);
        description.is_one_of_many = is_apply(run);
        for (const auto name : base::split(subject.rest.modules, ' '))
            if (!name.empty()) description.follows.emplace_back(name);
        description.again =
            is_apply(run) ? "kmm-upgrade apply " + subject.full_name()
                          : fmt::format("kmm-upgrade start module {} --to {}", subject.full_name(), run.to_version);
        description.elsewhere = fmt::format(
            "kmm-upgrade start module {} --to VERSION with the Module at the version wanted", subject.full_name());
        for (const auto name : base::split(subject.created_definitions, ','))
            if (!name.empty())
                description.notes.emplace_back("created", fmt::format("CustomResourceDefinition {}", name));
        if (is_final_run_state(run.state)) add_nodes_without(run, description);
        return description;
    }

    /// The images that were live.
    [[nodiscard]] std::vector<std::string> former(const Run& run) const override {
        std::set<std::string> images;
        for (const auto& node : run.nodes)
            if (const auto* entry = node.facts.is_null() ? nullptr : node.facts.find("fromEntry"))
                images.insert(entry->get_string({"config", "containerImage"}));
        return {images.begin(), images.end()};
    }

    [[nodiscard]] std::string target_text(const Header& run, const NodeRecord& node) const override {
        return goes_away(node) ? "-" : version_text(run.to_version);
    }

    [[nodiscard]] Members members(const Run& run, const Stage& stage) const override {
        return canary_members(run, stage);
    }

    [[nodiscard]] std::string next_step(const Run& run, const NodeRecord& node, const Stage& /*stage*/) const override {
        const auto& state = node.state;
        if (state == k_node_pending) return "check";
        if (state == "checking") {
            const auto next = text_of(node, "next");
            if (node.open || next.empty()) return "check";
            // Nobody has to leave a node on which nothing is left to change.
            return run.options.drain && next != "validate" ? "cordon" : next;
        }
        if (state == "cordoning") return "cordon";
        if (state == "cordoned" || state == "draining") return "drain";
        if (state == "drained") return text_of(node, "next");
        if (state == "unloading") return "unload";
        if (state == "unloaded" && goes_away(node)) return "validate";
        if (state == "unloaded" || state == "loading") return "load";
        if (state == "loaded" || (state == "validating" && node.open)) return "validate";
        if (state == "validating" || state == "uncordoning") return "uncordon";
        return "";
    }

    [[nodiscard]] std::string pause_note(const Run& run, const Stage& stage) const override {
        return canary_note(run, stage);
    }

private:
    /// Pods that need the module may come to such a node, as nothing cordons it any more.
    static void add_nodes_without(const Run& run, Description& description) {
        constexpr std::size_t k_named = 8;
        const auto names = nodes_without(run);
        if (names.empty()) return;
        description.notes.emplace_back("without", base::join_some(names, k_named) + ": the module is not loaded there");
        const bool narrow = !is_apply(run) && names.size() == 1;
        const auto again = description.again + (narrow ? " --node " + names.front() : "");
        const bool may_change = run.state == k_run_aborted && !is_apply(run);
        const auto* const when =
            may_change ? " loads it; for another version change the Module first" : " loads it, once the cause is gone";
        description.notes.emplace_back("hint", again + when);
    }

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

const Procedures& procedures() {
    static const Procedures both = {&procedure_module(), &procedure_apply()};
    return both;
}

}  // namespace kmm::upgrade::module
