// SPDX-License-Identifier: Apache-2.0
// Checks of configuration: ConfigMaps of kubeadm, images of the control plane, runtimes, rights.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/cluster_checks/field_types.hpp"
#include "kubernetes/cluster_checks/kubeadm_reads.hpp"
#include "kubernetes/cluster_checks/kubeadm_writes.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/node_findings.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"
#include "kubernetes/versions/config_api.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

/// That kubeadm cannot read `version`, nullopt if it can. The kubeadm is that of the target, else that of the cluster.
std::optional<Finding> version_unread(const CheckInput& input, std::string_view version) {
    constexpr const char* k_edit = "kubectl edit configmap -n kube-system kubeadm-config";
    const auto reader = input.target ? input.target : input.seen.highest_control_plane();
    const auto name = base::escape(version);
    const auto* known = find_config_api(version);
    if (known == nullptr) {
        const auto what =
            fmt::format("apiVersion {}: kubeadm {} and earlier do not know it", name, k_last_known_kubeadm.text());
        if (reader && reader->line() > k_last_known_kubeadm) { return Finding{Outcome::skip, what}; }
        return Finding{Outcome::fail, what, fmt::format("write the apiVersion that its fields are of: {}", k_edit)};
    }
    if (reader ? known->is_read_by(reader->line()) : !known->has_end()) { return std::nullopt; }
    Finding finding{Outcome::fail, fmt::format("apiVersion {} is read by kubeadm {}{}", name, known->readers(),
                                               reader ? fmt::format(", not by {}", reader->text()) : "")};
    if (reader && reader->line() < known->first) {
        finding.fix = fmt::format("write it as {}: {}", newest_config_api(reader->line()).name, k_edit);
    }
    return finding;
}

Finding kubeadm_config_parses(const CheckInput& input) {
    const auto configuration = cluster_configuration(input.inventory);
    if (!configuration.root) { return configuration.problem; }
    const auto version = configuration.root->get_string({"apiVersion"});
    if (!version.starts_with("kubeadm.k8s.io/")) {
        return {Outcome::fail,
                fmt::format("expected apiVersion kubeadm.k8s.io/v1beta4, found '{}'", base::escape(version))};
    }
    if (auto unread = version_unread(input, version)) { return *unread; }
    if (auto unread = kubeadm_reads(input); unread.outcome != Outcome::ok) { return unread; }
    if (!configuration.repeated.empty()) { return repeated_keys("kubeadm-config", configuration.repeated); }
    if (const auto proxy = proxy_config_map(input.inventory); !proxy.repeated.empty()) {
        return repeated_keys("kube-proxy", proxy.repeated);
    }
    return {Outcome::skip,
            fmt::format("{} can be read; only kubeadm config validate on a node shows that the target accepts it",
                        base::escape(version))};
}

/// Without answers of nodes: what differs is known of some flags only.
Finding manifest_drift_of_objects(const CheckInput& input) {
    auto finding = kubeadm_writes(input);
    return finding.outcome == Outcome::ok ? Finding{Outcome::skip, "needs --via ssh, which asks each node"} : finding;
}

Finding kubelet_config_cm(const CheckInput& input) {
    const auto configuration = kubelet_config_map(input.inventory);
    if (!configuration.root) { return configuration.problem; }
    const auto version = configuration.root->get_string({"apiVersion"});
    if (version != "kubelet.config.k8s.io/v1beta1") {
        return {Outcome::fail, fmt::format("kubelet of ConfigMap kube-system/kubelet-config: expected apiVersion "
                                           "kubelet.config.k8s.io/v1beta1, found '{}'",
                                           base::escape(version))};
    }
    if (const auto wrong = wrong_kubelet_fields(*configuration.root); !wrong.empty()) {
        return {Outcome::fail, fmt::format("kubelet of ConfigMap kube-system/kubelet-config: {}", name_some(wrong)),
                "kubectl edit configmap -n kube-system kubelet-config; kubeadm ends where it reads another type"};
    }
    if (!configuration.repeated.empty()) { return repeated_keys("kubelet-config", configuration.repeated); }
    return {Outcome::ok, fmt::format("ConfigMap kube-system/kubelet-config holds {}", base::escape(version))};
}

Finding kubernetes_version_cm(const CheckInput& input) {
    const auto configuration = cluster_configuration(input.inventory);
    if (!configuration.root) { return configuration.problem; }
    const auto text = configuration.root->get_string({"kubernetesVersion"});
    const auto named = Version::parse(text);
    if (!named) {
        return {Outcome::fail,
                fmt::format("kubernetesVersion: expected {}, found '{}'", k_version_form, base::escape(text))};
    }
    if (auto unknown = versions_unknown(input)) { return *unknown; }
    std::vector<std::string> others;
    for (const auto& running : input.seen.control_plane) {
        if (*running.version != *named) {
            others.push_back(
                fmt::format("{} on {} ({})", running.component, base::escape(running.node), running.version->text()));
        }
    }
    if (others.empty()) {
        return {Outcome::ok, fmt::format("kubeadm-config names {}, which the control plane runs", named->text())};
    }
    // An upgrade has begun, and its first control plane has come to the end of it.
    std::string fix;
    if (named == input.target)
        fix = "kmm-upgrade resume goes on with a run under way; else: start with --ignore-checks "
              "versions-uniform,kubernetes-version-cm";
    else if (others.size() < input.seen.control_plane.size())
        fix = fmt::format("kmm-upgrade resume goes on with a run under way; else: kubeadm upgrade node, of {}, on the "
                          "other control planes",
                          named->text());
    return {Outcome::fail, fmt::format("kubeadm-config names {}, others run: {}", named->text(), name_some(others)),
            fix};
}

bool is_external_etcd(const CheckInput& input) {
    const auto configuration = cluster_configuration(input.inventory);
    const auto* external = configuration.root ? configuration.root->find_path({"etcd", "external"}) : nullptr;
    return external != nullptr && !external->is_null();
}

Finding etcd_external(const CheckInput& input) {
    const auto configuration = cluster_configuration(input.inventory);
    if (!configuration.root) { return {Outcome::skip, configuration.problem.detail}; }
    if (is_external_etcd(input)) {
        return {Outcome::warn, "kubeadm-config names an external etcd"};
    }
    return {Outcome::ok, "kubeadm-config names no external etcd"};
}

/// kubeadm compares it with that of the etcd that runs, and ends where it cannot.
std::optional<Finding> fixed_etcd_unreadable(const CheckInput& input) {
    const auto tag = configured_etcd(input.inventory);
    if (tag.empty() || fixed_etcd(input.inventory)) { return std::nullopt; }
    return Finding{Outcome::fail,
                   fmt::format("etcd.local.imageTag of kubeadm-config is '{}': kubeadm upgrades no control plane with "
                               "a tag that is not a version",
                               base::escape(tag)),
                   "name a version there, as 3.5.26-0, or leave it out"};
}

/// kubeadm leaves the version that kubeadm-config fixes, and has probes that need a later one.
std::optional<Finding> fixed_etcd_too_old(const CheckInput& input) {
    const Version probed{3, 5, 11, ""};
    const auto fixed = fixed_etcd(input.inventory);
    if (!fixed || *fixed >= probed || input.target->line() < MinorVersion{1, 31}) { return std::nullopt; }
    return Finding{Outcome::fail,
                   fmt::format("etcd.local.imageTag of kubeadm-config is {}; the probes that {} gives its Pod need {}",
                               fixed->text().substr(1), input.target->line().text(), probed.text().substr(1))};
}

Finding etcd_version_floor(const CheckInput& input) {
    if (is_external_etcd(input)) {
        return {Outcome::skip, "kubeadm-config names an external etcd, whose version is not seen"};
    }
    if (auto unreadable = fixed_etcd_unreadable(input)) { return *unreadable; }
    if (auto old = fixed_etcd_too_old(input)) { return *old; }
    if (const auto fixed = fixed_etcd(input.inventory); fixed && *fixed < Version{3, 6, 0, ""}) {
        return {Outcome::ok, fmt::format("etcd.local.imageTag of kubeadm-config is {}", fixed->text().substr(1))};
    }
    const auto* entry = input.catalogue.find(*input.target);
    const auto fixed = fixed_etcd(input.inventory);
    const auto target = fixed ? fixed : Version::parse(entry == nullptr ? "" : entry->etcd);
    if (!target) {
        return {Outcome::skip, fmt::format("the metadata does not say which etcd {} brings", input.target->text())};
    }
    const Version floor{3, 5, 26, ""}, first{3, 6, 0, ""};
    if (*target < first) {
        return {Outcome::ok, fmt::format("{} brings etcd {}", input.target->text(), target->text().substr(1))};
    }
    std::vector<std::string> unknown, low;
    for (const auto& node : input.seen.control_plane_nodes) {
        const auto member = std::find_if(input.seen.etcd.begin(), input.seen.etcd.end(),
                                         [&](const auto& each) { return each.node == node; });
        if (member == input.seen.etcd.end()) {
            unknown.push_back(fmt::format("no Pod of etcd on {}", base::escape(node)));
        } else if (!member->version) {
            unknown.push_back(member->problem);
        } else if (*member->version < floor) {
            low.push_back(fmt::format("{} ({})", base::escape(node), member->version->text().substr(1)));
        }
    }
    if (!low.empty()) {
        return {Outcome::fail, fmt::format("{} brings etcd {}; below 3.5.26: {}", input.target->text(),
                                           target->text().substr(1), name_some(low))};
    }
    if (!unknown.empty() || input.seen.etcd.empty()) {
        return {Outcome::skip, unknown.empty() ? "no Pod of etcd was found" : name_some(unknown)};
    }
    return {Outcome::ok, fmt::format("members of etcd at 3.5.26 or later: {}", input.seen.etcd.size())};
}

Finding etcd_36_floor(const CheckInput& input) {
    if (auto lower = target_lower(input)) { return *lower; }
    auto found = etcd_version_floor(input);
    const auto configuration = cluster_configuration(input.inventory);
    if (found.outcome != Outcome::ok || configuration.root) { return found; }
    // It may fix the version of etcd.
    return {Outcome::skip, fmt::format("{}, but kubeadm-config was not read: {}", found.detail,
                                       configuration.problem.detail)};
}

Finding image_repository_equal(const CheckInput& input) {
    std::map<std::string, std::vector<std::string>> users;
    for (const auto& running : input.seen.control_plane) {
        if (running.pod == nullptr) { return {Outcome::skip, running.problem}; }
        for (const auto& container : running.pod->containers) {
            if (container.name != running.component) { continue; }
            const auto slash = container.image.rfind('/');
            users[slash == std::string::npos ? "" : container.image.substr(0, slash)].push_back(
                fmt::format("{} on {}", running.component, base::escape(running.node)));
        }
    }
    if (users.empty()) { return {Outcome::skip, "no Pod of the control plane was found"}; }
    if (users.size() == 1) {
        const auto configuration = cluster_configuration(input.inventory);
        const auto named = configuration.root ? image_repository(*configuration.root) : std::string();
        if (configuration.root && named != users.begin()->first && users.begin()->first != "k8s.gcr.io") {
            return {Outcome::warn,
                    fmt::format("kubeadm-config names {}, the control plane runs images of {}", base::escape(named),
                                base::escape(users.begin()->first)),
                    "set imageRepository in kubeadm-config to where the images of the target are"};
        }
        const auto same = fmt::format("all images are of {}", base::escape(users.begin()->first));
        if (!configuration.root) {
            return {Outcome::skip, fmt::format("{}, but kubeadm-config was not read: {}", same,
                                               configuration.problem.detail)};
        }
        return {Outcome::ok, same};
    }
    std::vector<std::string> parts;
    for (const auto& [repository, names] : users) {
        parts.push_back(fmt::format("{}: {}", base::escape(repository), name_some(names)));
    }
    return {Outcome::warn, base::join(parts, "; ")};
}

/// Why the kubelet of the target does not start on a node with cgroup v1, "" if it does. `map`: kubelet-config, null if
/// it was not read.
std::string cgroup_v1_problem(const CheckInput& input, const Node& facts, const Node& map) {
    const std::string v1 = "cgroup v1";
    // A flag wins over every file.
    const auto flag = base::to_lower(kubelet_flag(texts_of(facts, {"kubelet", "arguments"}), "--fail-cgroupv1"));
    if (!flag.empty()) {
        return flag == "false" || flag == "f" || flag == "0" ? std::string()
                                                             : fmt::format("{}, and --fail-cgroupv1 is {}", v1, flag);
    }
    const bool is_accepted = flag_of(kubelet_configuration_of(facts), {"failCgroupV1"}) == false;
    if (map.is_null() || input.intent.has_patches) { return is_accepted ? std::string() : v1; }
    if (flag_of(coming_kubelet_configuration(facts, map), {"failCgroupV1"}) == false) { return {}; }
    return is_accepted ? fmt::format("{}, and kubeadm takes failCgroupV1: false away, which is in {} and not in "
                                     "kubelet-config", v1, base::escape(kubelet_file_of(facts)))
                       : v1;
}

Finding cgroup_version(const CheckInput& input) {
    const auto* facts = input.catalogue.facts_of(input.target->line());
    if (facts == nullptr) {
        return {Outcome::skip, fmt::format("the metadata has no facts of {}", input.target->line().text())};
    }
    if (!facts->needs_cgroup_v2) {
        return {Outcome::ok, fmt::format("{} takes cgroup v1 and v2", facts->minor.text())};
    }
    const auto configuration = kubelet_config_map(input.inventory);
    Finding unknown{
        Outcome::skip,
        fmt::format("{} needs cgroup v2; which one a node has is asked with --via ssh", facts->minor.text())};
    if (input.nodes != nullptr) {
        const Node map = configuration.root ? *configuration.root : Node();
        auto on_nodes = each_node(input, "every node has cgroup v2, or a kubelet that takes v1",
                                  [&](const std::string&, const Node& node) {
            const auto found = text_of(node, {"cgroup"});
            auto problem = found == "v2" ? std::string() : cgroup_v1_problem(input, node, map);
            return !problem.empty() && found.empty() ? "its version is unknown: " + unread(node, "cgroup") : problem;
        });
        if (on_nodes.outcome != Outcome::skip) { return on_nodes; }
        unknown = std::move(on_nodes);
    }
    const Node* fails = configuration.root ? configuration.root->find("failCgroupV1") : nullptr;
    if (fails != nullptr && fails->as_bool() == false) {
        return {Outcome::warn, fmt::format("{} needs cgroup v2; kubelet-config accepts v1 by failCgroupV1: false",
                                           facts->minor.text())};
    }
    return unknown;
}

/// kubeadm takes the socket of a node from its annotation, up to v1.33; v1.34 takes the annotation away.
std::vector<std::string> bad_sockets(const Inventory& inventory) {
    constexpr std::string_view k_socket = "kubeadm.alpha.kubernetes.io/cri-socket";
    const auto socket_of = [&](const NodeObject& node) { return find_label(node.meta.annotations, k_socket); };
    const auto& nodes = inventory.nodes;
    const bool is_used =
        std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) { return socket_of(node) != nullptr; });
    std::vector<std::string> bad;
    for (const auto& node : nodes) {
        const auto kubelet = Version::parse(node.kubelet);
        if (!is_used || !kubelet || kubelet->line() >= MinorVersion{1, 34}) { continue; }
        const auto* socket = socket_of(node);
        if (socket == nullptr) { bad.push_back(fmt::format("{} (has none, others have)", base::escape(node.meta.name)));
        } else if (socket->find("dockershim.sock") != std::string::npos) {
            bad.push_back(fmt::format("{} ({})", base::escape(node.meta.name), base::escape(*socket)));
        }
    }
    return bad;
}

Finding runtime_version(const CheckInput& input) {
    if (const auto bad = bad_sockets(input.inventory); !bad.empty()) {
        return {Outcome::fail,
                fmt::format("kubeadm reads annotation kubeadm.alpha.kubernetes.io/cri-socket of its Node: {}",
                            name_some(bad)),
                "kubectl annotate --overwrite node NODE "
                "kubeadm.alpha.kubernetes.io/cri-socket=unix:///run/containerd/containerd.sock"};
    }
    const MinorVersion warned{1, 35}, refused{1, 36};
    if (input.target->line() < warned) {
        return {Outcome::skip, fmt::format("no rule is known for {}", input.target->line().text())};
    }
    std::vector<std::string> old, unknown;
    std::set<std::string> fixes;
    for (const auto& node : input.inventory.nodes) {
        const auto scheme = node.runtime.find("://");
        const std::string name = node.runtime.substr(0, scheme);
        std::string_view number = node.runtime;
        number.remove_prefix(scheme == std::string::npos ? number.size() : scheme + 3);
        // Distributions add their own part: 1.7.12-0ubuntu0~22.04.1, 1.6.20~ds1.
        number = number.substr(0, number.find('~'));
        const auto version = Version::parse(number);
        const auto text = fmt::format("{} ({})", base::escape(node.meta.name),
                                      node.runtime.empty() ? "not reported" : base::escape(node.runtime));
        if (!version || (name != "containerd" && name != "cri-o")) { unknown.push_back(text);
        } else if (*version < (name == "containerd" ? Version{2, 0, 0, ""} : Version{1, 28, 0, ""})) {
            old.push_back(text);
            fixes.insert(name == "containerd" ? "upgrade containerd to 2.0 or later"
                                              : "upgrade CRI-O to 1.28 or later");
        }
    }
    if (!old.empty()) {
        return {input.target->line() < refused ? Outcome::warn : Outcome::fail,
                fmt::format("without RuntimeConfig, which kubeadm asks for from v1.35 on: {}", name_some(old)),
                base::join(std::vector<std::string>(fixes.begin(), fixes.end()), "; ")};
    }
    if (!unknown.empty()) { return {Outcome::skip, fmt::format("not known to this program: {}", name_some(unknown))}; }
    if (input.inventory.nodes.empty()) { return {Outcome::skip, "there is no Node"}; }
    return {Outcome::ok, fmt::format("runtimes with RuntimeConfig: {}", input.inventory.nodes.size())};
}

Finding admin_rights(const CheckInput& input) {
    if (!input.inventory.is_admin) { return {Outcome::skip, "needs an API server"}; }
    if (*input.inventory.is_admin) { return {Outcome::ok, "this user may do everything"}; }
    const auto& lacking = input.inventory.lacking_rights;
    if (lacking.empty()) { return {Outcome::ok, "this user may do what an upgrade does"}; }
    return {Outcome::fail, fmt::format("this user may not {}", name_some(lacking))};
}

Finding freeze_possible(const CheckInput& input) {
    if (!input.intent.freezes) { return {Outcome::skip, "applications are not frozen (--no-freeze)"}; }
    const auto lowest = input.seen.lowest_control_plane();
    if (lowest && lowest->line() < MinorVersion{1, 30}) {
        return {Outcome::warn, fmt::format("{} has no ValidatingAdmissionPolicy v1", lowest->text())};
    }
    if (!input.inventory.has_policies) { return {Outcome::skip, "needs an API server"}; }
    return *input.inventory.has_policies ? Finding{Outcome::ok, "ValidatingAdmissionPolicy v1 is served"}
                                         : Finding{Outcome::warn, "ValidatingAdmissionPolicy v1 is not served"};
}

constexpr CheckRow k_config_rows[] = {
    {"kubeadm-config-parses", kubeadm_config_parses},
    {"manifest-drift", manifest_drift_of_objects},
    {"kubelet-config-cm", kubelet_config_cm},
    {"kubernetes-version-cm", kubernetes_version_cm},
    {"etcd-external", etcd_external},
    {"etcd-36-floor", etcd_36_floor},
    {"image-repository-equal", image_repository_equal},
    {"cgroup-version", cgroup_version},
    {"runtime-version", runtime_version},
    {"admin-rights", admin_rights},
    {"freeze-possible", freeze_possible},
};

}  // namespace

std::span<const CheckRow> config_checks() noexcept { return k_config_rows; }

}  // namespace kmm::kubernetes
