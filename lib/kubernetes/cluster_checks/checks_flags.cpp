// SPDX-License-Identifier: Apache-2.0
// Checks of flags, admission plugins and feature gates that the target lacks.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/cluster_checks/component_flags.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/node_findings.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

/// What minors remove, in their order.
using RemovedIn = std::vector<const MinorFacts*>;

/// The minors that are entered on the way to the target, each with what it removes.
struct Crossed {
    RemovedIn facts;
    std::vector<std::string> unknown;  ///< minors whose removals are not, or not all, known
};

/// All known minors up to the target: kubeadm writes what a document has, though nothing runs with it now.
RemovedIn all_removed(const CheckInput& input) {
    RemovedIn removed;
    for (const auto& facts : input.catalogue.minors) {
        if (facts.minor <= input.target->line()) { removed.push_back(&facts); }
    }
    return removed;
}

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

bool contains(const std::vector<std::string>& list, std::string_view text) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

const std::vector<std::string>& removed_flags_of(const Removals& removed, std::string_view component) {
    if (component == "kube-apiserver") { return removed.apiserver_flags; }
    return component == "kube-scheduler" ? removed.scheduler_flags : removed.controller_manager_flags;
}

/// The names in the value of `flag`, as A=true, B=false. Kubernetes takes blanks around them.
std::vector<std::string> names_in(const std::map<std::string, std::string>& flags, const char* flag) {
    std::vector<std::string> result;
    const auto at = flags.find(flag);
    if (at == flags.end()) { return result; }
    for (const auto piece : base::split(at->second, ',')) {
        result.emplace_back(base::trim(piece.substr(0, piece.find('='))));
    }
    return result;
}

/// A feature gate and what it is set to, as written; the text is "" where none is.
using Gates = std::vector<std::pair<std::string, std::string>>;

/// Those of --feature-gates. Of one component they may be written as "component:Gate=true".
Gates gates_of_flags(const std::map<std::string, std::string>& flags) {
    Gates gates;
    const auto at = flags.find("feature-gates");
    if (at == flags.end()) { return gates; }
    for (auto piece : base::split(at->second, ',')) {
        const auto equals = piece.find('=');
        auto name = base::trim(piece.substr(0, equals));
        if (const auto colon = name.rfind(':'); colon != std::string_view::npos) { name = name.substr(colon + 1); }
        gates.emplace_back(name, equals == std::string_view::npos ? "" : base::trim(piece.substr(equals + 1)));
    }
    return gates;
}

/// Those of a configuration's featureGates; none for null.
Gates gates_of_configuration(const Node* configured) {
    Gates gates;
    if (configured == nullptr || !configured->is_mapping()) { return gates; }
    for (const auto& each : configured->members()) {
        const bool is_scalar = !each.value.is_mapping() && !each.value.is_sequence();
        gates.emplace_back(each.key, is_scalar ? each.value.text() : std::string());
    }
    return gates;
}

/// As Go reads a flag of a gate.
std::optional<bool> switch_of(std::string_view text) {
    const auto lower = base::to_lower(text);
    if (lower == "true" || lower == "t" || lower == "1") { return true; }
    return lower == "false" || lower == "f" || lower == "0" ? std::optional(false) : std::nullopt;
}

/// Why a minor does not start with the gate, as "feature gate A (gone in v1.35)"; "" if it does.
std::string gate_problem(const MinorFacts& facts, const std::string& name, std::string_view setting) {
    if (contains(facts.removed.feature_gates, name)) {
        return fmt::format("feature gate {} (gone in {})", name, facts.minor.text());
    }
    const auto is_set = switch_of(setting);
    if (!is_set || !contains(facts.removed.locked_gates, fmt::format("{}={}", name, !*is_set))) { return {}; }
    return fmt::format("feature gate {}={} (locked to {} from {} on)", name, *is_set, !*is_set, facts.minor.text());
}

/// What `flags` of a component have that is gone. `place`: where they are, as "kube-apiserver on cp1".
void find_removed(std::string_view component, std::string_view place, const std::map<std::string, std::string>& flags,
                  const RemovedIn& removed_in, std::vector<std::string>& found) {
    const auto report = [&](std::string_view what, std::string_view name, const MinorFacts& facts) {
        found.push_back(fmt::format("{}: {} {} (gone in {})", place, what, name, facts.minor.text()));
    };
    const auto words = [&](const char* flag) { return names_in(flags, flag); };
    for (const auto* facts : removed_in) {
        for (const auto& flag : removed_flags_of(facts->removed, component)) {
            if (flags.contains(flag)) { report("flag", "--" + flag, *facts); }
        }
        for (const auto& [gate, setting] : gates_of_flags(flags)) {
            if (const auto problem = gate_problem(*facts, gate, setting); !problem.empty()) {
                found.push_back(fmt::format("{}: {}", place, problem));
            }
        }
        for (const auto* flag : {"enable-admission-plugins", "disable-admission-plugins"}) {
            for (const auto& plugin : words(flag)) {
                if (contains(facts->removed.admission_plugins, plugin)) { report("admission plugin", plugin, *facts); }
            }
        }
    }
}

/// kubeadm writes the manifests again from kubeadm-config, whatever runs now.
void find_removed_extra(const CheckInput& input, std::vector<std::string>& found) {
    const auto configuration = cluster_configuration(input.inventory);
    if (!configuration.root) { return; }
    for (const auto& [member, component] :
         {std::pair("apiServer", "kube-apiserver"), std::pair("controllerManager", "kube-controller-manager"),
          std::pair("scheduler", "kube-scheduler")}) {
        const auto* part = configuration.root->find(member);
        if (part == nullptr || !part->is_mapping()) { continue; }
        std::vector<std::string> here;
        find_removed(component, fmt::format("{}.extraArgs of kubeadm-config", member), extra_flags(*part),
                     all_removed(input), here);
        found.insert(found.end(), here.begin(), here.end());
    }
}

/// Flags of etcd 3.5 that etcd 3.6 does not start with. Source: etcd's CHANGELOG-3.6.
constexpr std::string_view k_gone_from_etcd[] = {
    "enable-v2",          "experimental-enable-v2v3", "proxy", "proxy-failure-wait", "proxy-refresh-interval",
    "proxy-dial-timeout", "proxy-write-timeout",      "proxy-read-timeout"};

/// Flags of etcd 3.5 and the feature gates that etcd 3.6 has for them; it refuses both at once. Source: etcd's
/// ExperimentalFlagToFeatureMap.
constexpr std::pair<std::string_view, std::string_view> k_gated_in_etcd[] = {
    {"experimental-stop-grpc-service-on-defrag", "StopGRPCServiceOnDefrag"},
    {"experimental-initial-corrupt-check", "InitialCorruptCheck"},
    {"experimental-compact-hash-check-enabled", "CompactHashCheck"},
    {"experimental-txn-mode-write-with-shared-buffer", "TxnModeWriteWithSharedBuffer"},
    {"experimental-enable-lease-checkpoint", "LeaseCheckpoint"},
    {"experimental-enable-lease-checkpoint-persist", "LeaseCheckpointPersist"}};
/// What kubeadm gives it where kubeadm-config has no feature-gates.
constexpr const char* k_etcd_gates = "InitialCorruptCheck=true";

/// The same for the manifest of etcd, whose version is what kubeadm-config fixes or kubeadm of the target brings.
void find_removed_from_etcd(const CheckInput& input, std::vector<std::string>& found) {
    const auto configuration = cluster_configuration(input.inventory);
    const auto* local = configuration.root ? configuration.root->find_path({"etcd", "local"}) : nullptr;
    const auto* entry = input.catalogue.find(*input.target);
    const auto fixed = fixed_etcd(input.inventory);
    const auto target = fixed ? fixed : Version::parse(entry == nullptr ? "" : entry->etcd);
    if (local == nullptr || !local->is_mapping() || !target || *target < Version{3, 6, 0, ""}) { return; }
    const auto flags = extra_flags(*local);
    for (const auto flag : k_gone_from_etcd) {
        if (flags.contains(std::string(flag))) {
            found.push_back(fmt::format("etcd.local.extraArgs of kubeadm-config: flag --{} (gone in etcd 3.6)", flag));
        }
    }
    const auto own = flags.find("feature-gates");
    const auto gates = own == flags.end() ? std::string(k_etcd_gates) : own->second;
    for (const auto& [flag, gate] : k_gated_in_etcd) {
        if (!flags.contains(std::string(flag)) || gates.find(gate) == std::string::npos) { continue; }
        found.push_back(fmt::format("etcd.local.extraArgs of kubeadm-config: flag --{} (etcd 3.6 refuses it beside "
                                    "--feature-gates={}{})",
                                    flag, base::escape(gates), own == flags.end() ? ", which kubeadm gives it" : ""));
    }
}

/// Feature gates of a configuration in a ConfigMap that are gone. `place`: what it is called.
void find_removed_gates(const CheckInput& input, const Configuration& configuration, std::string_view place,
                        std::vector<std::string>& found) {
    const Node* configured = configuration.root ? configuration.root->find("featureGates") : nullptr;
    for (const auto& [gate, setting] : gates_of_configuration(configured)) {
        std::string problem;
        for (const auto* facts : all_removed(input)) {
            const bool is_gone = contains(facts->removed.feature_gates, gate);
            if (problem.empty()) {
                problem = gate_problem(*facts, gate, setting);
            } else if (is_gone) {  // what is locked may go later
                problem.insert(problem.size() - 1, fmt::format(", gone in {}", facts->minor.text()));
            }
            if (is_gone) { break; }
        }
        if (!problem.empty()) { found.push_back(fmt::format("{}: {}", place, problem)); }
    }
}

Finding removed_flags(const CheckInput& input) {
    if (auto unknown = versions_unknown(input)) { return *unknown; }
    if (auto lower = target_lower(input)) { return *lower; }
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
        std::vector<std::string> arguments;
        for (const auto& container : containers) {
            if (container.name == running.component) { arguments = container.arguments; }
        }
        find_removed(running.component, fmt::format("{} on {}", running.component, base::escape(running.node)),
                     flags_of(arguments), crossed.facts, found);
    }
    find_removed_extra(input, found);
    find_removed_from_etcd(input, found);
    const bool is_of_proxy_only = found.empty();
    find_removed_gates(input, proxy_config_map(input.inventory), "ConfigMap kube-proxy", found);
    if (!found.empty()) {
        return {Outcome::fail, name_some(found),
                is_of_proxy_only ? "kubectl edit configmap -n kube-system kube-proxy" : ""};
    }
    // kubeadm writes the manifests from it.
    if (const auto configuration = cluster_configuration(input.inventory); !configuration.root) {
        return {Outcome::skip, fmt::format("none was found in what runs, but kubeadm-config was not read: {}",
                                           configuration.problem.detail)};
    }
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

/// Flags and gates among `arguments` that are gone, and gates of `configuration`.
std::string removed_from_kubelet(const Node& facts, const std::vector<std::string>& arguments,
                                 const Node& configuration, const Crossed& crossed) {
    std::vector<std::string> found;
    const auto flags = flags_of(arguments);
    const auto configured = gates_of_configuration(configuration.find("featureGates"));
    const auto of_flags = gates_of_flags(flags);
    for (const auto* removed_in : crossed.facts) {
        for (const auto& flag : removed_in->removed.kubelet_flags) {
            if (flags.contains(flag)) {
                found.push_back(fmt::format("flag --{} (gone in {})", flag, removed_in->minor.text()));
            }
        }
        std::set<std::string> reported;
        for (const auto& [gates, is_configured] : {std::pair(&configured, true), std::pair(&of_flags, false)}) {
            for (const auto& [gate, setting] : *gates) {
                auto problem = gate_problem(*removed_in, gate, setting);
                if (problem.empty() || !reported.insert(gate).second) { continue; }
                const auto file = is_configured ? drop_in_with_gate(facts, gate) : std::string();
                if (!file.empty()) { problem.insert(problem.size() - 1, fmt::format("; in {}", base::escape(file))); }
                found.push_back(std::move(problem));
            }
        }
    }
    return base::join(found, ", ");
}

/// What the files of services have that is gone, and the kubelets that run were not started with. Not every file is
/// read by the service.
std::vector<std::string> removed_at_restart(const NodeAnswers& nodes, const Crossed& crossed) {
    std::vector<std::string> result;
    for (const auto& [name, answer] : nodes) {
        if (answer.facts.is_null()) { continue; }
        const auto own = texts_of(answer.facts, {"kubelet", "ownFlags"});
        const auto found = removed_from_kubelet(answer.facts, own, Node(), crossed);
        if (!found.empty()) { result.push_back(fmt::format("{}: {}", base::escape(name), found)); }
    }
    return result;
}

/// Directories of further configuration that kubelets read over their file, where the node does not say what is there.
std::vector<std::string> unread_drop_ins(const NodeAnswers& nodes) {
    std::vector<std::string> result;
    for (const auto& [name, answer] : nodes) {
        if (answer.facts.is_null()) { continue; }
        const auto* files = answer.facts.find_path({"kubelet", "dropIns"});
        const auto directory = kubelet_flag(lasting_arguments(answer.facts), "--config-dir");
        if (directory.empty() || (files != nullptr && files->is_sequence())) { continue; }
        const auto reason = unread_reason(answer.facts, "kubelet.dropIns");
        result.push_back(fmt::format("{} has --config-dir {}{}{}{}", base::escape(name), directory,
                                     reason.empty() ? "" : " (", reason, reason.empty() ? "" : ")"));
    }
    return result;
}

Finding removed_kubelet_flags(const CheckInput& input) {
    const auto lowest = input.seen.lowest_kubelet();
    if (!lowest) { return versions_unknown(input).value_or(Finding{Outcome::skip, "there is no Node"}); }
    const auto configuration = kubelet_config_map(input.inventory);
    if (!configuration.root) { return {Outcome::skip, configuration.problem.detail}; }
    const auto crossed = crossed_minors(input, *lowest);
    std::vector<std::string> found;
    find_removed_gates(input, configuration, "kubelet-config", found);
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
                      return removed_from_kubelet(facts, lasting_arguments(facts), kubelet_configuration_of(facts),
                                                  crossed);
                  });
    if (on_nodes.outcome == Outcome::fail) { found.push_back(on_nodes.detail); }
    if (!found.empty()) { return {Outcome::fail, name_some(found)}; }
    if (on_nodes.outcome != Outcome::ok) { return on_nodes; }
    if (const auto later = removed_at_restart(*input.nodes, crossed); !later.empty()) {
        return {Outcome::warn, "no kubelet runs with it, but its files name what is gone: " + name_some(later),
                "remove it from /etc/default/kubelet, /etc/sysconfig/kubelet and the files of kubelet.service there"};
    }
    if (const auto unread_files = unread_drop_ins(*input.nodes); !unread_files.empty()) {
        return {Outcome::warn, "none was found, but not all is read: " + name_some(unread_files),
                "look for removed feature gates in the files there"};
    }
    if (!crossed.unknown.empty()) {
        return {Outcome::skip, fmt::format("none was found, but the metadata does not list all that is gone in {}",
                                           name_some(crossed.unknown))};
    }
    return on_nodes;
}

constexpr CheckRow k_flag_rows[] = {
    {"removed-flags", removed_flags},
    {"removed-kubelet-flags", removed_kubelet_flags},
};

}  // namespace

std::span<const CheckRow> flag_checks() noexcept { return k_flag_rows; }

}  // namespace kmm::kubernetes
