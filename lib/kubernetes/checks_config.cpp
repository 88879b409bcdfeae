// SPDX-License-Identifier: Apache-2.0
// Checks of configuration: ConfigMaps of kubeadm, flags and images of the control plane, runtimes, rights.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/node_findings.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes {
namespace {

Configuration configuration_of(const CheckInput& input, std::string_view map, std::string_view key,
                               std::string_view kind) {
    const auto fail = [](std::string detail) {
        return Configuration{std::nullopt, {Outcome::fail, std::move(detail)}};
    };
    const auto& maps = input.inventory.config_maps;
    const auto found = std::find_if(maps.begin(), maps.end(), [&](const auto& each) {
        return each.meta.ns == "kube-system" && each.meta.name == map;
    });
    if (found == maps.end()) {
        auto reason = input.inventory.unknown_reason("ConfigMap", "configmaps");
        if (!reason.empty()) { return {std::nullopt, {Outcome::skip, std::move(reason)}}; }
        return fail(fmt::format("ConfigMap kube-system/{} does not exist", map));
    }
    const auto text = found->data.find(key);
    if (text == found->data.end()) { return fail(fmt::format("ConfigMap kube-system/{} has no key {}", map, key)); }
    Diagnostics faults;
    auto documents = value::read_yaml(text->second, fmt::format("{}/{}", map, key), faults);
    if (!faults.empty()) {
        return fail(fmt::format("{}: {}",
                                faults.front().position ? faults.front().position->to_string() : std::string(map),
                                faults.front().message));
    }
    if (documents.size() != 1 || !documents.front().root.is_mapping()) {
        return fail(fmt::format("{} of ConfigMap kube-system/{}: expected one mapping", key, map));
    }
    const auto found_kind = documents.front().root.get_string({"kind"});
    if (found_kind != kind) {
        return fail(fmt::format("{} of ConfigMap kube-system/{}: expected kind {}, found '{}'", key, map, kind,
                                base::escape(found_kind)));
    }
    return {std::move(documents.front().root), {}};
}

Configuration cluster_configuration(const CheckInput& input) {
    return configuration_of(input, "kubeadm-config", "ClusterConfiguration", "ClusterConfiguration");
}

Finding kubeadm_config_parses(const CheckInput& input) {
    const auto configuration = cluster_configuration(input);
    if (!configuration.root) { return configuration.problem; }
    const auto version = configuration.root->get_string({"apiVersion"});
    if (!version.starts_with("kubeadm.k8s.io/")) {
        return {Outcome::fail,
                fmt::format("expected apiVersion kubeadm.k8s.io/v1beta4, found '{}'", base::escape(version))};
    }
    for (const auto* old : {"kubeadm.k8s.io/v1alpha", "kubeadm.k8s.io/v1beta1", "kubeadm.k8s.io/v1beta2"}) {
        if (version.starts_with(old)) {
            return {Outcome::fail,
                    fmt::format("apiVersion {} is not read by kubeadm v1.27 and later", base::escape(version))};
        }
    }
    return {Outcome::skip,
            fmt::format("{} can be read; only kubeadm config validate on a node shows that the target accepts it",
                        base::escape(version))};
}

Finding kubelet_config_cm(const CheckInput& input) {
    const auto configuration = kubelet_config_map(input);
    if (!configuration.root) { return configuration.problem; }
    return {Outcome::ok, fmt::format("ConfigMap kube-system/kubelet-config holds {}",
                                     base::escape(configuration.root->get_string({"apiVersion"})))};
}

Finding kubernetes_version_cm(const CheckInput& input) {
    const auto configuration = cluster_configuration(input);
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
    return {Outcome::fail, fmt::format("kubeadm-config names {}, others run: {}", named->text(), name_some(others))};
}

Finding etcd_external(const CheckInput& input) {
    const auto configuration = cluster_configuration(input);
    if (!configuration.root) { return {Outcome::skip, configuration.problem.detail}; }
    if (configuration.root->find_path({"etcd", "external"}) != nullptr) {
        return {Outcome::warn, "kubeadm-config names an external etcd"};
    }
    return {Outcome::ok, "kubeadm-config names no external etcd"};
}

Finding etcd_36_floor(const CheckInput& input) {
    const auto* entry = input.catalogue.find(*input.target);
    const auto target = Version::parse(entry == nullptr ? "" : entry->etcd);
    if (!target) {
        return {Outcome::skip, fmt::format("the metadata does not say which etcd {} brings", input.target->text())};
    }
    const Version floor{3, 5, 26, ""}, first{3, 6, 0, ""};
    if (*target < first) {
        return {Outcome::ok, fmt::format("{} brings etcd {}", input.target->text(), target->text())};
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
            low.push_back(fmt::format("{} ({})", base::escape(node), member->version->text()));
        }
    }
    if (!low.empty()) {
        return {Outcome::fail, fmt::format("{} brings etcd {}; below 3.5.26: {}", input.target->text(), target->text(),
                                           name_some(low))};
    }
    if (!unknown.empty() || input.seen.etcd.empty()) {
        return {Outcome::skip, unknown.empty() ? "no Pod of etcd was found" : name_some(unknown)};
    }
    return {Outcome::ok, fmt::format("members of etcd at 3.5.26 or later: {}", input.seen.etcd.size())};
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
        return {Outcome::ok, fmt::format("all images are of {}", base::escape(users.begin()->first))};
    }
    std::vector<std::string> parts;
    for (const auto& [repository, names] : users) {
        parts.push_back(fmt::format("{}: {}", base::escape(repository), name_some(names)));
    }
    return {Outcome::warn, base::join(parts, "; ")};
}

/// The minors that are entered on the way to the target, each with what it removes.
struct Crossed {
    std::vector<const MinorFacts*> facts;
    std::vector<std::string> unknown;  ///< minors whose removals are not, or not all, known
};

Crossed crossed_minors(const CheckInput& input, const Version& from) {
    Crossed crossed;
    const auto target = input.target->line();
    for (auto minor = from.line(); minor.major == target.major && minor.minor < target.minor;) {
        ++minor.minor;
        const auto* facts = input.catalogue.facts_of(minor);
        if (facts != nullptr) { crossed.facts.push_back(facts); }
        if (facts == nullptr || !facts->removed.complete) { crossed.unknown.push_back(minor.text()); }
    }
    return crossed;
}

/// The values of flag `name`; nullopt if it is not given. Flags are compared with '-' for '_'.
std::map<std::string, std::string> flags_of(const std::vector<std::string>& arguments) {
    std::map<std::string, std::string> flags;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string_view text = arguments[i];
        if (!text.starts_with("--")) { continue; }
        text.remove_prefix(2);
        const auto equals = text.find('=');
        std::string name(text.substr(0, equals));
        std::replace(name.begin(), name.end(), '_', '-');
        std::string value;
        if (equals != std::string_view::npos) { value = text.substr(equals + 1); }
        else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("-")) { value = arguments[i + 1]; }
        auto& all = flags[name];
        all += (all.empty() ? "" : ",") + value;
    }
    return flags;
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

const std::vector<std::string>& removed_flags_of(const Removals& removed, std::string_view component) {
    if (component == "kube-apiserver") { return removed.apiserver_flags; }
    return component == "kube-scheduler" ? removed.scheduler_flags : removed.controller_manager_flags;
}

void find_removed(const Running& running, const Crossed& crossed, std::vector<std::string>& found) {
    std::vector<std::string> arguments;
    for (const auto& container : running.pod->containers) {
        if (container.name == running.component) { arguments = container.arguments; }
    }
    const auto flags = flags_of(arguments);
    const auto report = [&](std::string_view what, std::string_view name, const MinorFacts& facts) {
        found.push_back(fmt::format("{} on {}: {} {} (gone in {})", running.component, base::escape(running.node), what,
                                    name, facts.minor.text()));
    };
    const auto words = [&](const char* flag) {
        std::vector<std::string> result;
        const auto at = flags.find(flag);
        if (at == flags.end()) { return result; }
        for (const auto piece : base::split(at->second, ',')) {
            result.emplace_back(base::trim(piece.substr(0, piece.find('='))));
        }
        return result;
    };
    for (const auto* facts : crossed.facts) {
        for (const auto& flag : removed_flags_of(facts->removed, running.component)) {
            if (flags.contains(flag)) { report("flag", "--" + flag, *facts); }
        }
        for (const auto& gate : words("feature-gates")) {
            // Gates of one component may be written as "component:Gate=true".
            const auto name = gate.substr(gate.rfind(':') == std::string::npos ? 0 : gate.rfind(':') + 1);
            if (contains(facts->removed.feature_gates, name)) { report("feature gate", name, *facts); }
        }
        for (const auto* flag : {"enable-admission-plugins", "disable-admission-plugins"}) {
            for (const auto& plugin : words(flag)) {
                if (contains(facts->removed.admission_plugins, plugin)) { report("admission plugin", plugin, *facts); }
            }
        }
    }
}

Finding removed_flags(const CheckInput& input) {
    if (auto unknown = versions_unknown(input)) { return *unknown; }
    const auto crossed = crossed_minors(input, *input.seen.lowest_control_plane());
    std::vector<std::string> found;
    for (const auto& running : input.seen.control_plane) {
        const auto& containers = running.pod->containers;
        const bool has_arguments = std::any_of(containers.begin(), containers.end(), [&](const auto& each) {
            return each.name == running.component && !each.arguments.empty();
        });
        if (!has_arguments) {
            return {Outcome::skip,
                    fmt::format("Pod {} shows no arguments", base::escape(running.pod->meta.full_name()))};
        }
        find_removed(running, crossed, found);
    }
    if (!found.empty()) { return {Outcome::fail, name_some(found)}; }
    if (!crossed.unknown.empty()) {
        return {Outcome::skip, fmt::format("none was found, but the metadata does not list all that is gone in {}",
                                           name_some(crossed.unknown))};
    }
    return {Outcome::ok, crossed.facts.empty()
                             ? "the minor stays"
                             : "control planes use nothing that is gone in " + input.target->line().text()};
}

/// Flags that kubeadm gives the kubelet and `kubeadm upgrade` takes away before the kubelet is switched.
constexpr std::string_view k_dropped_by_kubeadm[] = {"--pod-infra-container-image"};

/// The arguments that a kubelet will have after `kubeadm upgrade`. One that is running may still have what kubeadm has
/// taken out of kubeadm-flags.env.
std::vector<std::string> lasting_arguments(const Node& facts) {
    auto arguments = texts_of(facts, {"kubelet", "arguments"});
    const auto* own = facts.find_path({"kubelet", "ownFlags"});
    if (own == nullptr || !own->is_sequence()) { return arguments; }
    const auto name_of = [](std::string_view word) { return word.substr(0, word.find('=')); };
    const auto own_flags = texts_of(facts, {"kubelet", "ownFlags"});
    std::erase_if(arguments, [&](const auto& word) {
        const auto name = name_of(word);
        return std::find(std::begin(k_dropped_by_kubeadm), std::end(k_dropped_by_kubeadm), name) !=
                   std::end(k_dropped_by_kubeadm) &&
               std::none_of(own_flags.begin(), own_flags.end(),
                            [&](const auto& flag) { return name_of(flag) == name; });
    });
    return arguments;
}

/// Flags and gates of one kubelet that are gone.
std::string removed_from_kubelet(const std::vector<std::string>& arguments, const Node* gates, const Crossed& crossed) {
    std::vector<std::string> found;
    const auto flags = flags_of(arguments);
    for (const auto* facts : crossed.facts) {
        for (const auto& flag : facts->removed.kubelet_flags) {
            if (flags.contains(flag)) {
                found.push_back(fmt::format("flag --{} (gone in {})", flag, facts->minor.text()));
            }
        }
        for (const auto& gate : facts->removed.feature_gates) {
            const auto in_flags = flags.find("feature-gates");
            const bool is_flag =
                in_flags != flags.end() && ("," + in_flags->second).find("," + gate + "=") != std::string::npos;
            if (is_flag || (gates != nullptr && gates->find(gate) != nullptr)) {
                found.push_back(fmt::format("feature gate {} (gone in {})", gate, facts->minor.text()));
            }
        }
    }
    return base::join(found, ", ");
}

Finding removed_kubelet_flags(const CheckInput& input) {
    const auto lowest = input.seen.lowest_kubelet();
    if (!lowest) { return {Outcome::fail, "the versions of the kubelets are not known"}; }
    const auto configuration = kubelet_config_map(input);
    if (!configuration.root) { return {Outcome::skip, configuration.problem.detail}; }
    const auto crossed = crossed_minors(input, *lowest);
    std::vector<std::string> found;
    if (const Node* gates = configuration.root->find("featureGates")) {
        for (const auto& gate : gates->members()) {
            for (const auto* facts : crossed.facts) {
                if (contains(facts->removed.feature_gates, gate.key)) {
                    found.push_back(
                        fmt::format("kubelet-config: feature gate {} (gone in {})", gate.key, facts->minor.text()));
                }
            }
        }
    }
    if (!found.empty() && input.nodes == nullptr) { return {Outcome::fail, name_some(found)}; }
    if (input.nodes == nullptr) {
        return {Outcome::skip, "none was found in kubelet-config; flags need --via ssh, which asks each node"};
    }
    auto on_nodes =
        each_node(input, "kubelets use nothing that is gone in " + input.target->line().text(),
                  [&](const std::string&, const Node& facts) {
                      const auto* arguments = facts.find_path({"kubelet", "arguments"});
                      if (arguments == nullptr || !arguments->is_sequence()) {
                          return "its flags are unknown: " + unread(facts, "kubelet.arguments");
                      }
                      return removed_from_kubelet(lasting_arguments(facts),
                                                  facts.find_path({"kubelet", "config", "featureGates"}), crossed);
                  });
    if (on_nodes.outcome == Outcome::fail) { found.push_back(on_nodes.detail); }
    if (!found.empty()) { return {Outcome::fail, name_some(found)}; }
    if (on_nodes.outcome == Outcome::ok && !crossed.unknown.empty()) {
        return {Outcome::skip, fmt::format("none was found, but the metadata does not list all that is gone in {}",
                                           name_some(crossed.unknown))};
    }
    return on_nodes;
}

Finding cgroup_version(const CheckInput& input) {
    const auto* facts = input.catalogue.facts_of(input.target->line());
    if (facts == nullptr) {
        return {Outcome::skip, fmt::format("the metadata has no facts of {}", input.target->line().text())};
    }
    if (!facts->needs_cgroup_v2) {
        return {Outcome::ok, fmt::format("{} takes cgroup v1 and v2", facts->minor.text())};
    }
    if (input.nodes != nullptr) {
        auto on_nodes = each_node(input, "every node has cgroup v2", [&](const std::string&, const Node& node) {
            const auto found = text_of(node, {"cgroup"});
            if (found == "v2" || flag_of(node, {"kubelet", "config", "failCgroupV1"}) == false) {
                return std::string();
            }
            return found.empty() ? "its version is unknown: " + unread(node, "cgroup")
                                 : fmt::format("cgroup {}", base::escape(found));
        });
        if (on_nodes.outcome != Outcome::skip) { return on_nodes; }
    }
    const auto configuration = kubelet_config_map(input);
    const Node* fails = configuration.root ? configuration.root->find("failCgroupV1") : nullptr;
    if (fails != nullptr && fails->as_bool() == false) {
        return {Outcome::warn, fmt::format("{} needs cgroup v2; kubelet-config accepts v1 by failCgroupV1: false",
                                           facts->minor.text())};
    }
    return {Outcome::skip,
            fmt::format("{} needs cgroup v2; which one a node has is asked with --via ssh", facts->minor.text())};
}

Finding runtime_version(const CheckInput& input) {
    const MinorVersion warned{1, 35}, refused{1, 36};
    if (input.target->line() < warned) {
        return {Outcome::skip, fmt::format("no rule is known for {}", input.target->line().text())};
    }
    std::vector<std::string> old, unknown;
    for (const auto& node : input.inventory.nodes) {
        const auto scheme = node.runtime.find("://");
        const std::string name = node.runtime.substr(0, scheme);
        const auto version = scheme == std::string::npos
                                 ? std::nullopt
                                 : Version::parse(std::string_view(node.runtime).substr(scheme + 3));
        const auto text = fmt::format("{} ({})", base::escape(node.meta.name),
                                      node.runtime.empty() ? "not reported" : base::escape(node.runtime));
        if (!version || (name != "containerd" && name != "cri-o")) { unknown.push_back(text);
        } else if (*version < (name == "containerd" ? Version{2, 0, 0, ""} : Version{1, 28, 0, ""})) {
            old.push_back(text);
        }
    }
    if (!old.empty()) {
        return {input.target->line() < refused ? Outcome::warn : Outcome::fail,
                fmt::format("without RuntimeConfig, which kubeadm asks for from v1.35 on: {}", name_some(old))};
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
    {"kubelet-config-cm", kubelet_config_cm},
    {"kubernetes-version-cm", kubernetes_version_cm},
    {"etcd-external", etcd_external},
    {"etcd-36-floor", etcd_36_floor},
    {"image-repository-equal", image_repository_equal},
    {"removed-flags", removed_flags},
    {"removed-kubelet-flags", removed_kubelet_flags},
    {"cgroup-version", cgroup_version},
    {"runtime-version", runtime_version},
    {"admin-rights", admin_rights},
    {"freeze-possible", freeze_possible},
};

}  // namespace

std::optional<Version> configured_version(const Inventory& inventory) {
    const Observation nothing;
    const auto configuration = cluster_configuration({inventory, nothing, builtin_catalogue(), std::nullopt});
    return configuration.root ? Version::parse(configuration.root->get_string({"kubernetesVersion"})) : std::nullopt;
}

std::string configured_etcd(const Inventory& inventory) {
    const Observation nothing;
    const auto configuration = cluster_configuration({inventory, nothing, builtin_catalogue(), std::nullopt});
    return configuration.root ? configuration.root->get_string({"etcd", "local", "imageTag"}) : std::string();
}

Configuration kubelet_config_map(const CheckInput& input) {
    return configuration_of(input, "kubelet-config", "kubelet", "KubeletConfiguration");
}

std::span<const CheckRow> config_checks() noexcept { return k_config_rows; }

}  // namespace kmm::kubernetes
