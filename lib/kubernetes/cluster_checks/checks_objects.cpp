// SPDX-License-Identifier: Apache-2.0
// Checks of objects: nodes, control-plane Pods, APIs, webhooks.
#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
    const auto found =
        std::find_if(conditions.begin(), conditions.end(), [&](const auto& each) { return each.type == type; });
    return found == conditions.end() ? nullptr : &*found;
}

/// Taints of a node that another program is about to remove, or has not taken in.
constexpr std::string_view k_passing_taints[] = {
    "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption",
    "node.kubernetes.io/out-of-service", "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown"};

/// "" if the node has no such taint.
std::string passing_taint(const NodeObject& node) {
    for (const auto& [key, effect] : node.taints) {
        if (std::find(std::begin(k_passing_taints), std::end(k_passing_taints), key) != std::end(k_passing_taints)) {
            return key;
        }
    }
    return {};
}

/// Without answers: nodes that cannot give one.
Finding nodes_answerable(const CheckInput& input) {
    std::vector<std::string> bad;
    const auto& nodes = input.inventory.nodes;
    // Only an upgrade has to ask them.
    for (const auto& node : input.target ? std::span<const NodeObject>(nodes) : std::span<const NodeObject>()) {
        const auto system = foreign_system(node);
        if (!system.empty()) { bad.push_back(fmt::format("{} ({})", base::escape(node.meta.name), system)); }
    }
    if (bad.empty()) { return {Outcome::skip, "needs --via ssh, which asks each node"}; }
    return {Outcome::fail, fmt::format("kmm-worker runs on Linux only: {}", name_some(bad)),
            "leave these nodes out with --leave-out, and upgrade them by hand"};
}

Finding nodes_ready(const CheckInput& input) {
    if (input.inventory.nodes.empty()) { return {Outcome::fail, "there is no Node"}; }
    std::vector<std::string> bad, cordoned, tainted;
    for (const auto& node : input.inventory.nodes) {
        const auto* ready = find_condition(node.conditions, "Ready");
        const auto name = base::escape(node.meta.name);
        if (ready == nullptr) { bad.push_back(fmt::format("{} (reports no Ready condition)", name));
        } else if (ready->status != "True") {
            bad.push_back(fmt::format(
                "{} ({})", name,
                base::escape(with_reason(ready->reason.empty() ? "Ready is " + ready->status : ready->reason,
                                         ready->message))));
        } else if (const auto taint = passing_taint(node); !taint.empty()) {
            tainted.push_back(fmt::format("{} ({})", name, base::escape(taint)));
        } else if (node.unschedulable) {
            cordoned.push_back(name);
        }
    }
    if (!bad.empty()) { return {Outcome::fail, fmt::format("not Ready: {}", name_some(bad))}; }
    if (!tainted.empty()) {
        return {Outcome::warn,
                fmt::format("Ready, but tainted by who starts and removes nodes: {}", name_some(tainted)),
                "pause the autoscaler, or wait until it is done with the node"};
    }
    if (!cordoned.empty()) {
        return {Outcome::warn, fmt::format("Ready, but cordoned: {}", name_some(cordoned)),
                "kubectl uncordon, unless somebody works on the node; an upgrade lifts no cordon but its own"};
    }
    return {Outcome::ok, fmt::format("nodes Ready: {}", input.inventory.nodes.size())};
}

Finding node_pressure(const CheckInput& input) {
    if (input.inventory.nodes.empty()) { return {Outcome::skip, "there is no Node"}; }
    std::vector<std::string> bad, unknown;
    for (const auto& node : input.inventory.nodes) {
        const auto name = base::escape(node.meta.name);
        for (const auto* type : {"MemoryPressure", "DiskPressure", "PIDPressure"}) {
            const auto* found = find_condition(node.conditions, type);
            if (found == nullptr) { unknown.push_back(fmt::format("{} reports no {}", name, type));
            } else if (found->status == "True") {
                bad.push_back(fmt::format("{} ({} is True)", name, type));
            } else if (found->status != "False") {
                unknown.push_back(fmt::format("{} ({} is {})", name, type, base::escape(found->status)));
            }
        }
        const auto* network = find_condition(node.conditions, "NetworkUnavailable");
        if (network != nullptr && network->status != "False") {
            bad.push_back(fmt::format("{} (NetworkUnavailable is {})", name, base::escape(network->status)));
        }
    }
    if (bad.empty() && !unknown.empty()) { return {Outcome::skip, name_some(unknown)}; }
    return fail_if_any(bad, fmt::format("nodes without pressure: {}", input.inventory.nodes.size()));
}

/// What to do about Pods of the control plane that are not there, "" if all are.
std::string fix_of_unseen(const Observation& seen) {
    Diagnostics unseen;
    std::copy_if(seen.faults.begin(), seen.faults.end(), std::back_inserter(unseen),
                 [](const auto& each) { return each.exit == Exit::not_found; });
    return fixes_of(unseen);
}

Finding cp_pods_ready(const CheckInput& input) {
    if (input.seen.control_plane_nodes.empty() || input.inventory.pods.empty()) {
        const auto reason = input.inventory.unknown_reason("Pod", "pods");
        if (!reason.empty()) { return {Outcome::skip, reason}; }
        return {Outcome::fail,
                input.seen.control_plane_nodes.empty() ? "no Node is labelled as control plane" : "there is no Pod",
                fix_of_unseen(input.seen)};
    }
    std::vector<std::string> bad, left;
    bool is_etcd_missing = false;
    const auto look = [&](const Running& running) {
        if (running.pod == nullptr) { bad.push_back(running.problem);
        } else if (running.pod->is_deleted) {
            bad.push_back(fmt::format("{} is being deleted", base::escape(running.pod->meta.full_name())));
        } else if (running.pod->phase != "Running" || !running.pod->is_ready) {
            bad.push_back(fmt::format("{} is not Ready (phase {}{}{})", base::escape(running.pod->meta.full_name()),
                                      running.pod->phase.empty() ? "not reported" : base::escape(running.pod->phase),
                                      running.pod->waiting.empty() ? "" : "; ", base::escape(running.pod->waiting)));
        }
    };
    for (const auto& running : input.seen.control_plane) { look(running); }
    for (const auto& running : input.seen.etcd) { look(running); }
    const auto configuration = cluster_configuration(input.inventory);
    const bool is_local = configuration.root && configuration.root->find_path({"etcd", "local"}) != nullptr;
    if (!input.seen.etcd.empty() || is_local) {
        for (const auto& node : input.seen.control_plane_nodes) {
            const bool has = std::any_of(input.seen.etcd.begin(), input.seen.etcd.end(),
                                         [&](const auto& each) { return each.node == node; });
            is_etcd_missing |= !has;
            if (!has) {
                bad.push_back(fmt::format("control-plane node {} has no Pod of etcd, {}", base::escape(node),
                                          input.seen.etcd.empty() ? "which kubeadm-config calls local"
                                                                  : "others have one"));
            }
        }
    }
    for (const auto& pod : input.inventory.pods) {
        if (pod.meta.ns == "kube-system" && pod.meta.name.starts_with("upgrade-health-check-") &&
            pod.phase != "Succeeded") {
            left.push_back(fmt::format("{}{}{}", base::escape(pod.meta.full_name()), pod.waiting.empty() ? "" : ": ",
                                       base::escape(pod.waiting)));
        }
    }
    if (bad.empty() && !left.empty()) {
        return {Outcome::warn, fmt::format("left by a health check of kubeadm: {}", name_some(left)),
                "repair what its Pod waits for, then kubectl delete job -n kube-system upgrade-health-check-..."};
    }
    auto found = fail_if_any(bad, fmt::format("Pods Ready: {}, control-plane nodes: {}",
                                              input.seen.control_plane.size() + input.seen.etcd.size(),
                                              input.seen.control_plane_nodes.size()));
    found.fix = fix_of_unseen(input.seen);
    if (found.fix.empty() && is_etcd_missing && !input.seen.etcd.empty()) {
        found.fix = "look into /etc/kubernetes/manifests of the node: kmm-worker kubernetes repair puts the manifest "
                    "of etcd back";
    }
    if (found.fix.empty() && is_local && input.seen.etcd.empty()) {
        found.fix = "look into /etc/kubernetes/manifests of the control planes; if etcd runs elsewhere, name it in "
                    "kubeadm-config: etcd.external with endpoints, caFile, certFile and keyFile in place of etcd.local";
    }
    return found;
}

Finding api_service_available(const CheckInput& input) {
    if (auto reason = input.inventory.unknown_reason("APIService", "apiservices"); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    std::vector<std::string> bad;
    for (const auto& service : input.inventory.api_services) {
        const auto* available = find_condition(service.conditions, "Available");
        if (available != nullptr && available->status == "True") { continue; }
        bad.push_back(
            fmt::format("{} ({})", base::escape(service.meta.name),
                        available == nullptr ? "reports no condition Available"
                                             : base::escape(with_reason(available->reason, available->message))));
    }
    return fail_if_any(bad, fmt::format("APIServices Available: {}", input.inventory.api_services.size()));
}

/// The nodes with ready endpoints of a service.
std::set<std::string> ready_nodes(const Inventory& inventory, const std::string& ns, const std::string& service) {
    std::set<std::string> nodes;
    for (const auto& slice : inventory.endpoints) {
        if (slice.meta.ns != ns || slice.service != service) { continue; }
        for (const auto& [ready, node] : slice.endpoints) {
            if (ready) { nodes.insert(node); }
        }
    }
    return nodes;
}

Finding crd_conversion(const CheckInput& input) {
    if (auto reason = input.inventory.unknown_reason("CustomResourceDefinition", "customresourcedefinitions");
        !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    const auto endpoints_unknown = input.inventory.unknown_reason("EndpointSlice", "endpointslices");
    std::vector<std::string> bad, unknown;
    for (const auto& definition : input.inventory.definitions) {
        const auto name = base::escape(definition.meta.name);
        for (const auto& version : definition.stored) {
            // One that is not served is still read and converted.
            if (std::find(definition.versions.begin(), definition.versions.end(), version) ==
                definition.versions.end()) {
                bad.push_back(
                    fmt::format("{}: version {} is stored and not in spec.versions", name, base::escape(version)));
            }
        }
        if (!definition.converts_by_webhook) { continue; }
        if (definition.service.empty()) {
            unknown.push_back(fmt::format("{}: its webhook is not a Service of the cluster", name));
        } else if (!endpoints_unknown.empty()) {
            unknown.push_back(fmt::format("{}: {}", name, endpoints_unknown));
        } else if (ready_nodes(input.inventory, definition.service_ns, definition.service).empty()) {
            bad.push_back(fmt::format("{}: Service {}/{} of its webhook has no ready endpoint", name,
                                      base::escape(definition.service_ns), base::escape(definition.service)));
        }
    }
    if (bad.empty() && !unknown.empty()) { return {Outcome::skip, name_some(unknown)}; }
    return fail_if_any(bad,
                       fmt::format("definitions that can read what is stored: {}", input.inventory.definitions.size()));
}

bool names_any(const std::vector<std::string>& list, std::initializer_list<std::string_view> wanted) {
    return std::any_of(list.begin(), list.end(),
                       [&](const auto& each) { return std::find(wanted.begin(), wanted.end(), each) != wanted.end(); });
}

/// Whether a webhook stands between the kubelet or a controller and Nodes, Leases of Nodes, or Pods and Leases of
/// kube-system or of its own namespace, where its own Pods would have to come back.
enum class Reach { none, perhaps, certain };

Reach reach_of(const WebhookObject& webhook) {
    Reach reach = Reach::none;
    for (const auto& rule : webhook.rules) {
        if (!names_any(rule.operations, {"*", "CREATE", "UPDATE", "DELETE"})) { continue; }
        const bool core = names_any(rule.groups, {"", "*"}),
                   lease = names_any(rule.groups, {"coordination.k8s.io", "*"});
        const bool nodes = core && names_any(rule.resources, {"*", "*/*", "nodes", "nodes/*", "nodes/status"});
        const bool pods = core && names_any(rule.resources, {"*", "*/*", "pods", "pods/*", "pods/status",
                                                             "pods/eviction", "pods/binding"});
        const bool leases = lease && names_any(rule.resources, {"*", "*/*", "leases"});
        // A namespaceSelector says nothing about objects of the whole cluster.
        if (nodes && rule.scope != "Namespaced") { reach = Reach::certain; }
        if ((!pods && !leases) || rule.scope == "Cluster") { continue; }
        const auto& terms = webhook.namespace_selector;
        const bool by_name = std::all_of(terms.begin(), terms.end(),
                                         [](const auto& term) { return term.key == "kubernetes.io/metadata.name"; });
        const auto takes = [&](const std::string& ns) {
            return matches(terms, Labels{{"kubernetes.io/metadata.name", ns}});
        };
        if (!by_name) { reach = std::max(reach, Reach::perhaps); }
        else if (takes("kube-system") || takes(webhook.service_ns) || (leases && takes("kube-node-lease"))) {
            reach = Reach::certain;
        }
    }
    const bool narrowed = webhook.has_object_selector || webhook.has_match_conditions;
    return narrowed ? std::min(reach, Reach::perhaps) : reach;
}

/// Whether a webhook stands before what kubeadm writes: its ConfigMaps, its Job, the addons and their rights.
Reach reach_of_writes(const WebhookObject& webhook) {
    struct Written {
        std::string_view group;
        std::initializer_list<std::string_view> in_namespace, in_cluster;
    };
    static const Written k_written[] = {{"", {"configmaps", "services", "serviceaccounts", "*", "*/*"}, {}},
                                        {"apps", {"deployments", "daemonsets", "*", "*/*"}, {}},
                                        {"batch", {"jobs", "*", "*/*"}, {}},
                                        {"rbac.authorization.k8s.io",
                                         {"roles", "rolebindings", "*", "*/*"},
                                         {"clusterroles", "clusterrolebindings", "*", "*/*"}}};
    const auto& terms = webhook.namespace_selector;
    const bool by_name = std::all_of(terms.begin(), terms.end(),
                                     [](const auto& term) { return term.key == "kubernetes.io/metadata.name"; });
    const bool takes_system = matches(terms, Labels{{"kubernetes.io/metadata.name", "kube-system"}});
    const auto own = !by_name ? Reach::perhaps : takes_system ? Reach::certain : Reach::none;
    Reach reach = Reach::none;
    for (const auto& rule : webhook.rules) {
        if (!names_any(rule.operations, {"*", "CREATE", "UPDATE"})) { continue; }
        for (const auto& written : k_written) {
            if (!names_any(rule.groups, {written.group, "*"})) { continue; }
            if (rule.scope != "Namespaced" && names_any(rule.resources, written.in_cluster)) { reach = Reach::certain; }
            if (rule.scope != "Cluster" && names_any(rule.resources, written.in_namespace)) {
                reach = std::max(reach, own);
            }
        }
    }
    const bool narrowed = webhook.has_object_selector || webhook.has_match_conditions;
    return narrowed ? std::min(reach, Reach::perhaps) : reach;
}

Finding webhook_deadlock(const CheckInput& input) {
    for (const auto& [kind, plural] : {std::pair("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
                                       std::pair("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
                                       std::pair("EndpointSlice", "endpointslices")}) {
        if (auto reason = input.inventory.unknown_reason(kind, plural); !reason.empty()) {
            return {Outcome::skip, std::move(reason)};
        }
    }
    std::vector<std::string> bad, unknown;
    for (const auto& webhook : input.inventory.webhooks) {
        if (!webhook.fails_closed) { continue; }
        // What kubeadm writes needs an answer, from wherever it comes.
        const auto reach_on_drain = reach_of(webhook);
        const bool is_of_writes = reach_on_drain == Reach::none;
        const auto reach = is_of_writes ? reach_of_writes(webhook) : reach_on_drain;
        if (reach == Reach::none) { continue; }
        const auto name = fmt::format("{} of {}", base::escape(webhook.webhook), base::escape(webhook.meta.name));
        if (webhook.service.empty()) {
            unknown.push_back(fmt::format("{} is outside of the cluster", name));
            continue;
        }
        const auto nodes = ready_nodes(input.inventory, webhook.service_ns, webhook.service);
        // Where no Pod has to leave its node, one endpoint is as good as two.
        const bool is_one_enough = is_of_writes || !input.intent.drains;
        // One that names no node may be on that of another.
        if (nodes.size() > (nodes.contains("") ? 2U : 1U) || (is_one_enough && !nodes.empty())) { continue; }
        if (nodes.contains("")) {
            unknown.push_back(fmt::format("endpoints of {} name no node", name));
            continue;
        }
        auto text = nodes.empty()
                        ? fmt::format("{} has no ready endpoint{}", name,
                                      is_of_writes ? ", and decides on what kubeadm writes" : "")
                        : fmt::format("{} has ready endpoints on {} only", name, base::escape(*nodes.begin()));
        (reach == Reach::certain ? bad : unknown).push_back(std::move(text));
    }
    if (bad.empty() && !unknown.empty()) {
        return {Outcome::skip, fmt::format("whether these matter is not known: {}", name_some(unknown))};
    }
    return fail_if_any(bad, "no webhook that must answer depends on one node");
}

constexpr CheckRow k_object_rows[] = {
    {"node-reach", nodes_answerable},
    {"nodes-ready", nodes_ready},
    {"node-pressure", node_pressure},
    {"cp-pods-ready", cp_pods_ready},
    {"apiservice-available", api_service_available},
    {"crd-conversion", crd_conversion},
    {"webhook-deadlock", webhook_deadlock},
};

}  // namespace

std::span<const CheckRow> object_checks() noexcept { return k_object_rows; }

}  // namespace kmm::kubernetes
