// SPDX-License-Identifier: Apache-2.0
// Checks of what draining a node would meet.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

std::set<std::string_view> undrained_nodes(const Inventory& inventory) {
    std::set<std::string_view> names;
    for (const auto& node : inventory.left_out) { names.insert(node.meta.name); }
    return names;
}

/// Whether DaemonSets of the namespace are known. Documents may be those of one namespace.
bool knows_daemons_of(const Inventory& inventory, const std::string& ns) {
    const auto& known = inventory.daemon_sets;
    return known && (inventory.is_live || std::any_of(known->begin(), known->end(), [&](const auto& name) {
                         return name.starts_with(ns + "/");
                     }));
}

/// Whether the DaemonSet that its Pod names is gone: nothing would make the Pod again.
bool is_daemon_gone(const Inventory& inventory, const PodObject& pod) {
    return !pod.daemon_set.empty() && knows_daemons_of(inventory, pod.meta.ns) &&
           !inventory.daemon_sets->contains(pod.meta.ns + "/" + pod.daemon_set);
}

/// Whether a drain evicts Pods of its kind.
bool is_evictable(const Inventory& inventory, const PodObject& pod) {
    return !pod.node.empty() && !pod.is_mirror &&
           (pod.controller_kind != "DaemonSet" || is_daemon_gone(inventory, pod));
}

/// The Pods that a drain of their node evicts.
std::vector<const PodObject*> evicted_pods(const Inventory& inventory) {
    const auto undrained = undrained_nodes(inventory);
    std::vector<const PodObject*> pods;
    for (const auto& pod : inventory.pods) {
        const bool ended = pod.phase == "Succeeded" || pod.phase == "Failed" || undrained.contains(pod.node);
        if (is_evictable(inventory, pod) && !pod.is_deleted && !ended) { pods.push_back(&pod); }
    }
    return pods;
}

/// Why nothing is known of the Pods that a drain evicts, "" if all is.
std::string drain_unknown_reason(const CheckInput& input) {
    return input.intent.drains ? input.inventory.pods_unknown_reason() : "no node is drained (--no-drain)";
}

std::string place_of(const PodObject& pod) {
    return fmt::format("{} on {}", base::escape(pod.meta.full_name()), base::escape(pod.node));
}

/// Why the budget allows no eviction of the Pod, "" if it allows one.
std::string blocked_by(const BudgetObject& budget, const PodObject& pod) {
    const auto name = base::escape(budget.meta.full_name());
    if (!pod.is_ready && budget.always_evicts_unhealthy) { return {}; }
    if (!budget.disruptions_allowed || budget.observed_generation < budget.generation) {
        return fmt::format("{} has no current status", name);
    }
    if (*budget.disruptions_allowed > 0) { return {}; }
    if (!budget.problem.empty()) {
        return base::escape(with_reason(fmt::format("{} cannot be computed", name), budget.problem));
    }
    // A Pod that is not ready goes if the others suffice.
    if (!pod.is_ready && budget.desired_healthy > 0 && budget.current_healthy >= budget.desired_healthy) { return {}; }
    return budget.desired_healthy == 0 ? fmt::format("{} allows 0 disruptions", name)
                                       : fmt::format("{} allows 0 disruptions ({} healthy, {} required)", name,
                                                     budget.current_healthy, budget.desired_healthy);
}

std::string fix_of_budget(const BudgetObject& budget) {
    if (!budget.disruptions_allowed || budget.observed_generation < budget.generation) {
        return "see why kube-controller-manager does not keep the status of the budget";
    }
    if (!budget.problem.empty()) { return "correct what the budget selects, or delete it"; }
    // With maxUnavailable: 0 or minAvailable: 100% all are required, however many there are.
    return "make Pods Ready, add replicas (where minAvailable is a number), or relax the budget for the time of the "
           "upgrade";
}

Finding pdb_blocks_drain(const CheckInput& input) {
    if (auto reason = drain_unknown_reason(input); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    if (auto reason = input.inventory.unknown_reason("PodDisruptionBudget", "poddisruptionbudgets"); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    std::vector<std::string> bad;
    std::set<std::string> fixes;
    for (const auto* pod : evicted_pods(input.inventory)) {
        if (pod->phase == "Pending") { continue; }  // evicted whatever a budget says
        std::vector<const BudgetObject*> over;
        for (const auto& budget : input.inventory.budgets) {
            if (budget.meta.ns == pod->meta.ns && budget.selector && matches(*budget.selector, pod->meta.labels)) {
                over.push_back(&budget);
            }
        }
        if (over.size() > 1) {
            std::vector<std::string> names;
            for (const auto* budget : over) { names.push_back(base::escape(budget->meta.name)); }
            bad.push_back(fmt::format("{}: {} budgets select it ({}), eviction is refused", place_of(*pod), over.size(),
                                      name_some(names)));
            fixes.insert("narrow the selectors of budgets, or delete all but one, so that one selects each Pod");
        }
        if (over.size() != 1) { continue; }
        if (const auto why = blocked_by(*over.front(), *pod); !why.empty()) {
            bad.push_back(fmt::format("{}: {}", place_of(*pod), why));
            fixes.insert(fix_of_budget(*over.front()));
        }
    }
    auto finding = fail_if_any(bad, fmt::format("budgets that stop no eviction: {}", input.inventory.budgets.size()));
    finding.fix = base::join(std::vector<std::string>(fixes.begin(), fixes.end()), "; ");
    return finding;
}

Finding drain_local_data(const CheckInput& input) {
    if (auto reason = drain_unknown_reason(input); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    std::vector<std::string> bad;
    for (const auto* pod : evicted_pods(input.inventory)) {
        if (pod->has_empty_dir) { bad.push_back(place_of(*pod)); }
    }
    if (!bad.empty() && input.intent.evicts_local_data) {
        return {Outcome::warn, fmt::format("the data in their emptyDir are lost: {}", name_some(bad)),
                "save what is needed before"};
    }
    return fail_if_any(bad, "no Pod that would be evicted has an emptyDir");
}

/// Why it is not known whether the DaemonSets exist whose Pods a drain would leave, "" if it is.
std::string daemons_unknown(const Inventory& inventory) {
    const auto unlisted = inventory.unlisted.find("daemonsets");
    if (unlisted != inventory.unlisted.end()) { return unlisted->second; }
    const auto undrained = undrained_nodes(inventory);
    std::set<std::string> unknown;
    for (const auto& pod : inventory.pods) {
        const bool ended = pod.phase == "Succeeded" || pod.phase == "Failed" || pod.is_deleted;
        if (pod.daemon_set.empty() || pod.node.empty() || ended || undrained.contains(pod.node) ||
            knows_daemons_of(inventory, pod.meta.ns)) {
            continue;
        }
        unknown.insert(base::escape(pod.meta.ns + "/" + pod.daemon_set));
    }
    return unknown.empty() ? std::string()
                           : fmt::format("whether DaemonSets exist that Pods name is not known: {}; dump them with "
                                         "kubectl get daemonsets -A",
                                         name_some({unknown.begin(), unknown.end()}));
}

Finding drain_unmanaged(const CheckInput& input) {
    if (auto reason = drain_unknown_reason(input); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    std::vector<std::string> bad;
    for (const auto* pod : evicted_pods(input.inventory)) {
        if (pod->controller_kind.empty()) { bad.push_back(place_of(*pod)); }
        if (!pod->daemon_set.empty()) {
            bad.push_back(fmt::format("{} (DaemonSet {} does not exist)", place_of(*pod),
                                      base::escape(pod->daemon_set)));
        }
    }
    if (!bad.empty() && input.intent.evicts_unmanaged) {
        return {Outcome::warn, fmt::format("no controller makes them again: {}", name_some(bad)),
                "create them again afterwards"};
    }
    if (bad.empty()) {
        if (auto reason = daemons_unknown(input.inventory); !reason.empty()) {
            return {Outcome::skip, std::move(reason)};
        }
    }
    return fail_if_any(bad, "every Pod that would be evicted has a controller");
}

/// A drain waits for a Pod that is deleted already, too, and nobody else may be about to let it go.
Finding drain_terminating(const CheckInput& input) {
    if (auto reason = drain_unknown_reason(input); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    constexpr std::int64_t k_patience = 60;  // seconds after its grace
    const auto undrained = undrained_nodes(input.inventory);
    std::vector<std::string> stuck, ending;
    for (const auto& pod : input.inventory.pods) {
        if (!pod.is_deleted || !pod.ends_by || undrained.contains(pod.node)) { continue; }
        if (!is_evictable(input.inventory, pod)) { continue; }
        const auto kept = pod.finalizers.empty()
                              ? std::string()
                              : fmt::format(" (finalizer {})", base::escape(base::join(pod.finalizers, ", ")));
        // When a dump was made is not known.
        if (!input.inventory.is_live) {
            ending.push_back(place_of(pod) + kept);
        } else if (const auto late = time_of_nodes(input) - *pod.ends_by; late > k_patience) {
            stuck.push_back(fmt::format("{}{}, for {}", place_of(pod), kept,
                                        base::format_duration(std::chrono::seconds(late))));
        }
    }
    if (!ending.empty()) {
        return {Outcome::warn, fmt::format("Terminating when the dump was made: {}", name_some(ending)),
                "see that they are gone"};
    }
    return fail_if_any(stuck, "no Pod outlives its grace");
}

bool tolerates(const PodObject& pod, const NodeObject& node) {
    return std::all_of(node.taints.begin(), node.taints.end(), [&](const auto& taint) {
        if (taint.second == "PreferNoSchedule") { return true; }
        return std::any_of(pod.tolerations.begin(), pod.tolerations.end(), [&](const auto& each) {
            return (each.first.empty() || each.first == taint.first) &&
                   (each.second.empty() || each.second == taint.second);
        });
    });
}

bool selects(const PodObject& pod, const NodeObject& node) {
    return std::all_of(pod.node_selector.begin(), pod.node_selector.end(), [&](const auto& wanted) {
        const auto* found = find_label(node.meta.labels, wanted.first);
        return found != nullptr && *found == wanted.second;
    });
}

bool is_ready(const NodeObject& node) {
    return std::any_of(node.conditions.begin(), node.conditions.end(),
                       [](const auto& each) { return each.type == "Ready" && each.status == "True"; });
}

/// What is left on each node, in their order; nodes that take no Pods have nothing.
std::vector<Resources> free_resources(const Inventory& inventory) {
    std::map<std::string_view, std::size_t> places;
    std::vector<Resources> free;
    for (const auto& node : inventory.nodes) {
        places.emplace(node.meta.name, free.size());
        free.push_back(!node.unschedulable && is_ready(node) ? node.allocatable : Resources{});
    }
    for (const auto& pod : inventory.pods) {
        const auto found = places.find(pod.node);
        if (found == places.end() || pod.phase == "Succeeded" || pod.phase == "Failed") { continue; }
        free[found->second] -= pod.requests;
    }
    return free;
}

/// The first of `pods`, the largest ones first, that no node but theirs has room for; nullptr if there is room for all.
/// `free` is as before then.
const PodObject* left_over(const Inventory& inventory, std::vector<Resources>& free,
                           std::vector<const PodObject*> pods) {
    std::stable_sort(pods.begin(), pods.end(),
                     [](const auto* a, const auto* b) { return a->requests.memory > b->requests.memory; });
    std::vector<std::pair<std::size_t, const PodObject*>> placed;
    const PodObject* left = nullptr;
    for (const auto* pod : pods) {
        std::size_t at = 0;
        while (at < free.size() &&
               !(free[at].has_room_for(pod->requests) && inventory.nodes[at].meta.name != pod->node &&
                 tolerates(*pod, inventory.nodes[at]) && selects(*pod, inventory.nodes[at]))) {
            ++at;
        }
        if (at == free.size()) {
            left = pod;
            break;
        }
        free[at] -= pod->requests;
        placed.emplace_back(at, pod);
    }
    for (const auto& [at, pod] : placed) { free[at] += pod->requests; }
    return left;
}

/// Affinity and volumes are not looked at, so that it can warn and never promise.
Finding capacity_for_drain(const CheckInput& input) {
    if (auto reason = drain_unknown_reason(input); !reason.empty()) { return {Outcome::skip, std::move(reason)}; }
    std::vector<std::string> silent, unread, problems;
    for (const auto& node : input.inventory.nodes) {
        for (const auto& quantity : node.unread_quantities) {
            unread.push_back(fmt::format("{} (allocatable {})", base::escape(node.meta.name), quantity));
        }
        if (node.allocatable.pods == 0 && node.unread_quantities.empty()) {
            silent.push_back(base::escape(node.meta.name));
        }
    }
    if (!silent.empty()) {
        return {Outcome::skip, fmt::format("status.allocatable is not reported by {}", name_some(silent))};
    }
    for (const auto& pod : input.inventory.pods) {
        if (pod.node.empty() || pod.phase == "Succeeded" || pod.phase == "Failed") { continue; }
        for (const auto& quantity : pod.unread_quantities) {
            unread.push_back(fmt::format("{} ({})", place_of(pod), quantity));
        }
    }
    auto free = free_resources(input.inventory);
    std::map<std::string_view, std::vector<const PodObject*>> by_node;
    std::size_t dns = 0;
    std::set<std::string_view> dns_nodes;
    for (const auto* pod : evicted_pods(input.inventory)) {
        by_node[pod->node].push_back(pod);
        const auto* app = find_label(pod->meta.labels, "k8s-app");
        if (pod->meta.ns == "kube-system" && app != nullptr && *app == "kube-dns") {
            ++dns;
            dns_nodes.insert(pod->node);
        }
    }
    for (const auto& [node, pods] : by_node) {
        if (const auto* pod = left_over(input.inventory, free, pods)) {
            problems.push_back(fmt::format("no other node has room for {}", place_of(*pod)));
        }
    }
    if (dns == 1) { problems.emplace_back("CoreDNS has one Pod: there is no DNS while its node is drained"); }
    std::string fix;
    if (dns > 1 && dns_nodes.size() == 1 && input.inventory.nodes.size() > 1) {
        // As the first node of kubeadm has them.
        if (problems.empty()) { fix = "kubectl rollout restart -n kube-system deployment coredns spreads them"; }
        problems.push_back(fmt::format("all {} Pods of CoreDNS are on {}: there is no DNS while it is drained", dns,
                                       base::escape(*dns_nodes.begin())));
    }
    const auto unknown =
        unread.empty() ? "" : fmt::format("quantities that cannot be read count as 0: {}", name_some(unread));
    if (!problems.empty()) {
        if (!unknown.empty()) { problems.push_back(unknown); }
        return {Outcome::warn, name_some(problems), std::move(fix)};
    }
    if (!unknown.empty()) { return {Outcome::skip, unknown}; }
    return {Outcome::ok,
            fmt::format("nodes whose Pods the others have room for, by what they request: {}", by_node.size())};
}

constexpr CheckRow k_drain_rows[] = {
    {"pdb-blocks-drain", pdb_blocks_drain},
    {"drain-local-data", drain_local_data},
    {"drain-unmanaged", drain_unmanaged},
    {"drain-terminating", drain_terminating},
    {"capacity-for-drain", capacity_for_drain},
};

}  // namespace

std::span<const CheckRow> drain_checks() noexcept { return k_drain_rows; }

}  // namespace kmm::kubernetes
