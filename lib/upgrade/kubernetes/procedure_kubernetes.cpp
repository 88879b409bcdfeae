// SPDX-License-Identifier: Apache-2.0
// The ordered upgrade of a Kubernetes cluster: images and backups on every node, control planes one at a time,
// networking, then kubelets. Nodes rest between these stages. A run may be about control planes or kubelets alone: then
// the stages of the others are left out.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::upgrade::kubernetes {
namespace {

/// Where nodes rest.
constexpr std::string_view k_prepared = "prepared", k_upgraded = "control-plane-upgraded";

/// Its states are VERBing-NAME, VERBed-NAME and VERBing-NAME-failed.
Stage stage_of(const std::string& verb, std::string_view name, std::vector<std::string> steps, std::string_view until) {
    const auto during = fmt::format("{}ing-{}", verb, name);
    return Stage{std::string(name),  during, fmt::format("{}ed-{}", verb, name), during + "-failed", std::move(steps),
                 std::string(until), false};
}

Table make_table(std::string name, bool is_networking_first) {
    Table::Parts parts;
    parts.name = std::move(name);
    const std::string prepared(k_prepared), upgraded(k_upgraded);
    const std::vector<std::string> control_plane{std::string(k_step_control_plane)};
    const auto images = stage_of("download", "images", {std::string(k_step_prepare)}, k_prepared);
    const auto first = stage_of("upgrad", "first-master", control_plane, k_upgraded);
    const auto networking = stage_of("upgrad", k_stage_networking, {}, "");
    const auto second = stage_of("upgrad", "second-master", control_plane, k_upgraded);
    const auto kubelets = stage_of("upgrad", "kubelets",
                                   {std::string(k_step_cordon), std::string(k_step_drain), std::string(k_step_kubelet),
                                    std::string(k_step_validate), std::string(k_step_uncordon)},
                                   k_node_done);
    if (is_networking_first) parts.stages = {images, networking, first, second, kubelets};
    else parts.stages = {images, first, networking, second, kubelets};
    parts.steps = {
        Step::of_node(k_step_prepare, {"pending"}, "preparing", k_prepared),
        Step::of_node(k_step_control_plane, {prepared}, "upgrading-control-plane", k_upgraded),
        Step::of_node(k_step_cordon, {prepared, upgraded}, "cordoning", "cordoned"),
        Step::of_node(k_step_drain, {"cordoned"}, "draining", "drained"),
        Step::of_node(k_step_kubelet, {prepared, upgraded, "drained"}, "upgrading-kubelet", "kubelet-upgraded"),
        Step::of_node(k_step_validate, {prepared, upgraded, "kubelet-upgraded"}, "validating", k_node_done),
        Step::of_node(k_step_uncordon, {"validating"}, "uncordoning", k_node_done),
        Step::of_node(k_step_rollback,
                  {"pending",
                   "preparing",
                   prepared,
                   "upgrading-control-plane",
                   upgraded,
                   "cordoning",
                   "cordoned",
                   "draining",
                   "drained",
                   "upgrading-kubelet",
                   "kubelet-upgraded",
                   "validating",
                   "uncordoning",
                   "preparing-failed",
                   "upgrading-control-plane-failed",
                   "cordoning-failed",
                   "draining-failed",
                   "upgrading-kubelet-failed",
                   "validating-failed",
                   "uncordoning-failed",
                   "done",
                   "skipped"},
                  "rolling-back", k_node_rolled_back),
    };
    // Where a cordon is still to be lifted, a validated node is not done.
    parts.side_moves.push_back(
        Move{Scope::node, "validating", "validating", Cause::finish, std::string(k_step_validate)});
    // At the end of a run a node that was done turns out to have been changed by somebody else.
    parts.side_moves.push_back(Move{Scope::node, "done", "validating-failed", Cause::observe, ""});
    return Table(std::move(parts));
}

const std::vector<Member> k_run_members = {{"kubernetes", MemberKind::mapping, "toVersion"}};
const std::vector<Member> k_node_members = {
    {"role", MemberKind::text, "architecture"},
    {"fromControlPlane", MemberKind::text, "fromVersion"},
    {"controlPlane", MemberKind::text, "fromVersion"},
    {"keptKubelet", MemberKind::text, "fromVersion"},
    {"backup", MemberKind::text, "fromVersion"},
    {"etcd", MemberKind::text, "fromVersion"},
    {"etcdNow", MemberKind::text, "fromVersion"},
    {"etcdRestore", MemberKind::text, "fromVersion"},
    {"clusterConfiguration", MemberKind::text, "fromVersion"},
};

/// The options without which the same start would ask for them, or do another thing to nodes; each with a blank before.
std::string way_options(const Run& run, const Subject& subject) {
    std::string options;
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) options += fmt::format(" --{} {}", name, base::command_word(value));
    };
    add("switch", subject.way);
    add("from", subject.directory);
    add("command", subject.command);
    if (run.options.via != Via::ssh) add("via", std::string(to_string(run.options.via)));
    add("worker-image", run.options.worker_image);
    add("versions", subject.versions_file);
    if (subject.is_without_snapshot) options += " --no-etcd-snapshot";
    if (!run.options.drain) options += " --no-drain";
    return options;
}

/// For --ignore-checks: nodes that were left out have the old version.
std::string checks_without_uniform(const Subject& subject) {
    auto checks = subject.ignored_checks;
    constexpr std::string_view k_uniform = "versions-uniform";
    if (std::find(checks.begin(), checks.end(), k_uniform) == checks.end()) checks.emplace_back(k_uniform);
    return base::join(checks, ",");
}

/// Whether abort can bring control planes back, and by which way; or how far etcd's data is on its way.
void add_way_back(const Run& run, const Subject& subject, Description& description) {
    if (subject.control_plane.empty() || is_final_run_state(run.state)) return;
    if (run.rollback && !is_restoring_etcd(run)) return;
    std::string restoring, etcd_before, etcd_now;
    bool has_backup = false;
    for (const auto& record : run.nodes) {
        const auto node = read(record);
        if (!node.is_control_plane) continue;
        has_backup = has_backup || !node.backup.empty();
        if (!node.etcd_restore.empty())
            restoring += fmt::format("{}{} {}", restoring.empty() ? "" : ", ", node.name, node.etcd_restore);
        if (etcd_before == etcd_now && !node.etcd.empty() && !node.etcd_now.empty()) {
            etcd_before = node.etcd;
            etcd_now = node.etcd_now;
        }
    }
    if (is_restoring_etcd(run))
        description.notes.emplace_back("etcd", fmt::format("its data goes back: {}; no API server may run", restoring));
    else if (has_backup)
        description.notes.emplace_back("back", way_back(etcd_before, etcd_now, subject.is_without_snapshot,
                                                        has_changed_kubelet(run)));
}

class KubernetesProcedure final : public Procedure {
public:
    explicit KubernetesProcedure(Table table) : table_(std::move(table)) {}
    [[nodiscard]] const Table& table() const override { return table_; }
    [[nodiscard]] const std::vector<Member>& run_members() const override { return k_run_members; }
    [[nodiscard]] const std::vector<Member>& node_members() const override { return k_node_members; }

    void check(const Run& run) const override {
        const auto subject = subject_of(run);
        require_recorded(
            {{"kubernetes.target", subject.target},
             {"toVersion", run.to_version},
             {"kubernetes.controlPlane and no kubernetes.kubelet", subject.control_plane + subject.kubelet}});
    }

    [[nodiscard]] Description describe(const Run& run) const override {
        const auto subject = subject_of(run);
        Description description;
        description.kind = "cluster";
        description.space = "kube-system";
        description.name = "kubernetes";
        description.from = run.from_version.empty() ? "unknown" : run.from_version;
        description.to = run.to_version;
        description.follows = subject.rest;
        description.again = "kmm-upgrade start kubernetes " + subject.target + way_options(run, subject);
        description.again_for_left_out = description.again + " --ignore-checks " + checks_without_uniform(subject);
        description.elsewhere = "kmm-upgrade start kubernetes VERSION";
        if (!subject.command.empty()) description.commands.emplace_back("command", subject.command);
        if (!subject.patch_query.empty()) description.commands.emplace_back("patch-query", subject.patch_query);
        if (!subject.app_check.empty()) description.commands.emplace_back("app-check", subject.app_check);
        if (!subject.hooks.empty()) description.commands.emplace_back("hook-dir", subject.hooks);
        if (subject.control_plane.empty()) description.notes.emplace_back("only", "kubelets");
        else if (subject.kubelet.empty()) description.notes.emplace_back("only", "control planes");
        if (subject.target != run.to_version) description.notes.emplace_back("target", subject.target);
        add_way_back(run, subject, description);
        return description;
    }

    [[nodiscard]] std::string target_text(const Header& run, const NodeRecord& /*node*/) const override {
        return run.to_version;
    }

    [[nodiscard]] std::pair<std::string, std::string> aspect(const Header& /*run*/,
                                                             const NodeRecord& node) const override {
        return {"CONTROL-PLANE", read(node).control_plane};
    }

    [[nodiscard]] Members members(const Run& run, const Stage& stage) const override {
        const auto subject = subject_of(run);
        Members members;
        const auto add = [&](auto&& is_member) {
            for (std::size_t place = 0; place < run.nodes.size(); ++place)
                if (is_member(run.nodes[place])) members.places.push_back(place);
        };
        const auto* first = first_control_plane(run);
        if (stage.name == "first-master" || stage.name == "second-master") {
            const bool wants_first = stage.name == "first-master";
            add([&](const NodeRecord& node) {
                return is_control_plane(node) && (node.name == first->name) == wants_first;
            });
            members.is_left_out = subject.control_plane.empty() || members.places.empty();
            members.at_once = 1;
        } else if (stage.name == k_stage_networking) {
            members.is_left_out = subject.networking.empty();
        } else {
            add([](const NodeRecord&) { return true; });
            // While a control plane is under way, no other node is.
            const bool is_left =
                stage.name == "kubelets" && std::any_of(run.nodes.begin(), run.nodes.end(), [](const NodeRecord& node) {
                    return is_control_plane(node) && !is_final_node_state(node.state);
                });
            if (is_left) members.at_once = 1;
        }
        return members;
    }

    [[nodiscard]] std::string next_step(const Run& run, const NodeRecord& node, const Stage& stage) const override {
        const auto& state = node.state;
        const auto named = [](std::string_view step) { return std::string(step); };
        if (stage.name == "images") return state == k_node_pending || state == "preparing" ? named(k_step_prepare) : "";
        if (stage.name == "first-master" || stage.name == "second-master") {
            const bool is_its_turn = is_control_plane(node) &&
                                     (node.name == first_control_plane(run)->name) == (stage.name == "first-master");
            return is_its_turn && (state == k_prepared || state == "upgrading-control-plane")
                       ? named(k_step_control_plane)
                       : "";
        }
        if (state == k_prepared || state == k_upgraded) {
            const auto subject = subject_of(run);
            // Nobody has to leave a node on which nothing is left to change.
            if (subject.kubelet.empty() || (node.current_known && node.current_version == subject.kubelet))
                return named(k_step_validate);
            return named(run.options.drain ? k_step_cordon : k_step_kubelet);
        }
        if (state == "cordoning") return named(k_step_cordon);
        if (state == "cordoned" || state == "draining") return named(k_step_drain);
        if (state == "drained" || state == "upgrading-kubelet") return named(k_step_kubelet);
        if (state == "kubelet-upgraded" || (state == "validating" && node.open)) return named(k_step_validate);
        if (state == "validating" || state == "uncordoning") return named(k_step_uncordon);
        return "";
    }

    [[nodiscard]] std::string restart_state(const Run& run, const NodeRecord& record) const override {
        const auto& state = record.state;
        if (state.starts_with("preparing") || state == k_node_pending) return std::string(k_node_pending);
        if (state.starts_with("upgrading-control-plane")) return std::string(k_prepared);
        // Nodes come to the last stage when all control planes are through.
        const bool was_upgraded = is_control_plane(record) && !subject_of(run).control_plane.empty();
        return std::string(was_upgraded ? k_upgraded : k_prepared);
    }

    [[nodiscard]] std::string skip_refusal(const Run& /*run*/, const NodeRecord& record) const override {
        return is_control_plane(record) ? "it has a control plane, which would stay at the old version" : "";
    }

    [[nodiscard]] bool has_way_back(const Run& run, const std::vector<std::string>& nodes) const override {
        return kubernetes::has_way_back(run, nodes);
    }

    /// A kubelet must never be newer than an API server; with the first control plane goes what kubeadm-config names.
    [[nodiscard]] int rollback_rank(const Run& run, const NodeRecord& record) const override {
        if (!is_control_plane(record)) return 0;
        return record.name == first_control_plane(run)->name ? 2 : 1;
    }

    [[nodiscard]] std::string pause_note(const Run& /*run*/, const Stage& stage) const override {
        return stage.name + " is done";
    }

private:
    Table table_;
};

}  // namespace

const NodeRecord* first_control_plane(const Run& run) {
    const auto found = std::find_if(run.nodes.begin(), run.nodes.end(), is_control_plane);
    return found == run.nodes.end() ? nullptr : &*found;
}

const Procedure& procedure_kubernetes() {
    static const KubernetesProcedure procedure(make_table("kubernetes", false));
    return procedure;
}

const Procedure& procedure_networking_first() {
    static const KubernetesProcedure procedure(make_table("kubernetes-networking-first", true));
    return procedure;
}

const Procedures& procedures() {
    static const Procedures both = {&procedure_kubernetes(), &procedure_networking_first()};
    return both;
}

}  // namespace kmm::upgrade::kubernetes
