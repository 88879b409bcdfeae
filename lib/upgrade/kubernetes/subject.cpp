// SPDX-License-Identifier: Apache-2.0
#include "upgrade/kubernetes/subject.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kmm::upgrade::kubernetes {
namespace {

constexpr std::string_view k_member = "kubernetes";
constexpr std::string_view k_role_control_plane = "control-plane";

void set_text(value::Node& tree, const char* name, const std::string& text) {
    if (!text.empty()) tree.set(name, text);
}

void set_texts(value::Node& tree, const char* name, const std::vector<std::string>& texts) {
    if (!texts.empty()) tree.set(name, value::Node::strings(texts));
}

}  // namespace

std::string version_before(const Header& run) { return run.from_version.substr(run.from_version.rfind(',') + 1); }

Subject subject_of(const Header& run) {
    const auto* found = run.subject.find(k_member);
    const auto tree = found == nullptr ? value::Node() : *found;
    Subject subject;
    subject.target = tree.get_string({"target"});
    subject.control_plane = tree.get_string({"controlPlane"});
    subject.kubelet = tree.get_string({"kubelet"});
    subject.rest = tree.get_texts({"rest"});
    subject.way = tree.get_string({"switch"});
    subject.directory = tree.get_string({"from"});
    subject.command = tree.get_string({"command"});
    subject.worker_options = tree.get_texts({"workerOptions"});
    subject.ignored_preflight = tree.get_string({"ignorePreflightErrors"});
    const auto* without = tree.find("noEtcdSnapshot");
    subject.is_without_snapshot = without != nullptr && without->as_bool() == true;
    if (const auto* keep = tree.find("keepBackups"); keep != nullptr && keep->as_uint().value_or(0) != 0)
        subject.keep_backups = *keep->as_uint();
    subject.ignored_checks = tree.get_texts({"ignoreChecks"});
    subject.networking = tree.get_string({"networking"});
    subject.versions_file = tree.get_string({"versions"});
    subject.patch_query = tree.get_string({"patchQuery"});
    subject.applied_patches = tree.get_texts({"appliedPatches"});
    subject.available_patches = tree.get_texts({"availablePatches"});
    subject.freeze = tree.get_string({"freeze"});
    subject.freeze_except = tree.get_texts({"freezeExcept"});
    subject.app_check = tree.get_string({"appCheck"});
    subject.canary_image = tree.get_string({"canaryImage"});
    subject.hooks = tree.get_string({"hooks"});
    return subject;
}

void set_subject(Header& run, const Subject& subject) {
    auto tree = value::Node::mapping({{"target", subject.target}});
    set_text(tree, "controlPlane", subject.control_plane);
    set_text(tree, "kubelet", subject.kubelet);
    set_texts(tree, "rest", subject.rest);
    set_text(tree, "switch", subject.way);
    set_text(tree, "from", subject.directory);
    set_text(tree, "command", subject.command);
    set_texts(tree, "workerOptions", subject.worker_options);
    set_text(tree, "ignorePreflightErrors", subject.ignored_preflight);
    if (subject.is_without_snapshot) tree.set("noEtcdSnapshot", true);
    if (subject.keep_backups != k_keep_backups) tree.set("keepBackups", subject.keep_backups);
    set_texts(tree, "ignoreChecks", subject.ignored_checks);
    set_text(tree, "networking", subject.networking);
    set_text(tree, "versions", subject.versions_file);
    set_text(tree, "patchQuery", subject.patch_query);
    set_texts(tree, "appliedPatches", subject.applied_patches);
    set_texts(tree, "availablePatches", subject.available_patches);
    set_text(tree, "freeze", subject.freeze);
    set_texts(tree, "freezeExcept", subject.freeze_except);
    set_text(tree, "appCheck", subject.app_check);
    set_text(tree, "canaryImage", subject.canary_image);
    set_text(tree, "hooks", subject.hooks);
    run.subject = value::Node::mapping({{std::string(k_member), std::move(tree)}});
}

bool is_control_plane(const NodeRecord& record) { return record.facts.get_string({"role"}) == k_role_control_plane; }

Node read(const NodeRecord& record) {
    Node node;
    static_cast<NodeRecord&>(node) = record;
    node.is_control_plane = is_control_plane(record);
    node.control_plane = record.facts.get_string({"controlPlane"});
    node.from_control_plane = record.facts.get_string({"fromControlPlane"});
    node.kept_kubelet = record.facts.get_string({"keptKubelet"});
    node.backup = record.facts.get_string({"backup"});
    node.etcd = record.facts.get_string({"etcd"});
    node.etcd_now = record.facts.get_string({"etcdNow"});
    node.etcd_restore = record.facts.get_string({"etcdRestore"});
    node.cluster_configuration = record.facts.get_string({"clusterConfiguration"});
    return node;
}

bool has_changed_kubelet(const Run& run) {
    if (subject_of(run).kubelet.empty()) return false;
    return std::any_of(run.nodes.begin(), run.nodes.end(), [](const NodeRecord& node) {
        return !node.from_version.empty() && node.current_version != node.from_version;
    });
}

std::string way_back(const std::string& etcd_before, const std::string& etcd_now, bool is_without_snapshot,
                     bool has_kubelets) {
    if (etcd_before.empty() || etcd_now.empty() || etcd_before == etcd_now) return "kmm-upgrade abort --rollback all";
    const auto changed = fmt::format("etcd {} -> {}", etcd_before, etcd_now);
    if (has_kubelets && !is_without_snapshot)
        return fmt::format("none: {}, and kubelets were changed; kmm-upgrade abort --rollback all --restore-etcd only "
                           "once they are back",
                           changed);
    return is_without_snapshot ? fmt::format("none: {}, and there is no snapshot", changed)
                               : fmt::format("kmm-upgrade abort --rollback all --restore-etcd: {}, what was written "
                                             "since the snapshot is lost",
                                             changed);
}

bool has_way_back(const Run& run, const std::vector<std::string>& nodes) {
    const auto subject = subject_of(run);
    if (subject.control_plane.empty()) return true;
    const auto minor = [](const std::string& version) { return version.substr(0, version.rfind('.')); };
    bool stays_newer = false, goes_older = false;
    for (const auto& record : run.nodes) {
        const auto node = read(record);
        if (std::find(nodes.begin(), nodes.end(), node.name) == nodes.end()) {
            stays_newer = stays_newer || node.state == k_node_done;
            continue;
        }
        if (!node.etcd.empty() && !node.etcd_now.empty() && node.etcd != node.etcd_now) return false;
        const auto& before = node.from_control_plane;
        goes_older = goes_older || (!before.empty() && minor(before) != minor(subject.kubelet));
    }
    return subject.kubelet.empty() || !stays_newer || !goes_older;
}

bool is_restoring_etcd(const Run& run) {
    return std::any_of(run.nodes.begin(), run.nodes.end(), [&](const NodeRecord& node) {
        const auto phase = node.facts.get_string({"etcdRestore"});
        if (phase == "done") return !run.rollback;
        return !phase.empty() && phase != "prepared";
    });
}

NodeRecord record_of(Node node) {
    auto facts = value::Node::mapping({{"role", node.is_control_plane ? k_role_control_plane : "worker"}});
    set_text(facts, "controlPlane", node.control_plane);
    set_text(facts, "fromControlPlane", node.from_control_plane);
    set_text(facts, "keptKubelet", node.kept_kubelet);
    set_text(facts, "backup", node.backup);
    set_text(facts, "etcd", node.etcd);
    set_text(facts, "etcdNow", node.etcd_now);
    set_text(facts, "etcdRestore", node.etcd_restore);
    set_text(facts, "clusterConfiguration", node.cluster_configuration);
    NodeRecord record = std::move(node);
    record.facts = std::move(facts);
    return record;
}

}  // namespace kmm::upgrade::kubernetes
