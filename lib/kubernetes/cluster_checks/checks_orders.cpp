// SPDX-License-Identifier: Apache-2.0
// Checks of other programs that change the cluster, upgrade its nodes or reboot them.
#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

/// The Pods with an image or name that has one of `parts` in it.
std::vector<std::string> pods_with(const Inventory& inventory, std::initializer_list<std::string_view> parts) {
    std::vector<std::string> found;
    for (const auto& pod : inventory.pods) {
        const bool is_one = std::any_of(pod.containers.begin(), pod.containers.end(), [&](const auto& container) {
            return std::any_of(parts.begin(), parts.end(),
                               [&](auto part) { return container.image.find(part) != std::string::npos; });
        });
        if (is_one) { found.push_back(base::escape(pod.meta.full_name())); }
    }
    return found;
}

/// Live: why the orders of a kind that the cluster has are not here, "" if they are.
std::string unlisted_reason(const Inventory& inventory, std::string_view kind) {
    const std::string_view name = order_kind(kind, "");
    const auto found = inventory.unlisted.find(name.substr(0, name.find('.')));
    return found == inventory.unlisted.end() ? std::string() : found->second;
}

/// Whether the orders of a kind are known: some were read, or a server that has the kind has listed them.
bool are_known(const Inventory& inventory, std::string_view kind) {
    const auto& orders = inventory.orders;
    if (std::any_of(orders.begin(), orders.end(), [&](const auto& order) { return order.kind == kind; })) {
        return true;
    }
    const auto& kinds = inventory.definitions;
    return inventory.is_live && unlisted_reason(inventory, kind).empty() &&
           std::any_of(kinds.begin(), kinds.end(), [name = std::string_view(order_kind(kind, ""))](const auto& each) {
               return each.meta.name == name;
           });
}

/// A lock that a node of the cluster holds is that of a reboot.
bool is_held_back(const Inventory& inventory, const KuredObject& kured) {
    const auto& nodes = inventory.nodes;
    return !kured.lock_owner.empty() && std::none_of(nodes.begin(), nodes.end(), [&](const auto& node) {
        return node.meta.name == kured.lock_owner;
    });
}

Finding reboot_daemons(const CheckInput& input) {
    const auto& inventory = input.inventory;
    std::vector<std::string> found;
    std::set<std::string> held;
    for (const auto& kured : inventory.kured_sets) {
        const auto name = kured.meta.full_name();
        if (is_held_back(inventory, kured)) {
            held.insert(name);
        } else {
            found.push_back("DaemonSet " + base::escape(name));
        }
    }
    for (const auto& pod : inventory.pods) {
        const auto& sets = inventory.kured_sets;
        const auto is_of = [&](const auto& kured) {
            return kured.meta.full_name() == pod.meta.ns + "/" + pod.daemon_set;
        };
        if (std::none_of(sets.begin(), sets.end(), is_of) &&
            std::any_of(pod.containers.begin(), pod.containers.end(),
                        [](const auto& container) { return is_kured(container.image); })) {
            found.push_back(base::escape(pod.meta.full_name()));
        }
    }
    if (!found.empty()) { return {Outcome::fail, fmt::format("kured runs: {}", name_some(found))}; }
    for (const auto& node : inventory.nodes) {
        if (find_label(node.meta.annotations, "weave.works/kured-reboot-in-progress") != nullptr) {
            found.push_back(base::escape(node.meta.name));
        }
    }
    if (!found.empty()) { return {Outcome::fail, fmt::format("kured reboots {}", name_some(found))}; }
    const auto reason = inventory.pods_unknown_reason();
    const std::string fine = held.empty() ? "no Pod of kured runs" : "the lock of kured is held";
    if (input.nodes == nullptr || !reason.empty()) {
        return {Outcome::skip,
                reason.empty() ? fine + "; what else reboots a node is asked with --via ssh" : reason};
    }
    return each_node(input, fine + ", and no node waits for a reboot",
                     [](const std::string&, const Node& facts) {
                         return flag_of(facts, {"rebootRequired"}) == true
                                    ? std::string("/run/reboot-required is there: something may reboot it")
                                    : std::string();
                     });
}

Finding other_orchestrators(const CheckInput& input) {
    static constexpr std::string_view k_marks[] = {"plan.upgrade.cattle.io/",
                                                   "cluster.x-k8s.io/",
                                                   "machine.openshift.io/",
                                                   "machineconfiguration.openshift.io/",
                                                   "rke.cattle.io/",
                                                   "management.cattle.io/",
                                                   "cattle.io/",
                                                   "rke2.io/",
                                                   "k3s.io/",
                                                   "kops.k8s.io/",
                                                   "eks.amazonaws.com/",
                                                   "karpenter.sh/",
                                                   "cloud.google.com/gke-",
                                                   "kubernetes.azure.com/cluster",
                                                   "node.k0sproject.io/",
                                                   "microk8s.io/",
                                                   "worker.gardener.cloud/",
                                                   "v1.kubeone.io/",
                                                   "minikube.k8s.io/",
                                                   "node.deckhouse.io/",
                                                   "extensions.talos.dev/",
                                                   "talos.dev/"};
    /// Systems whose kubelet comes with the image of the node.
    static constexpr std::string_view k_images[] = {"Talos (", "Bottlerocket OS"};
    std::vector<std::string> found = pods_with(input.inventory, {"system-upgrade-controller"});
    for (const auto& order : input.inventory.orders) {
        if (order.kind == "Plan") { found.push_back(fmt::format("Plan {}", base::escape(order.meta.full_name()))); }
    }
    for (const auto& node : input.inventory.nodes) {
        for (const auto* marks : {&node.meta.labels, &node.meta.annotations}) {
            const auto mark = std::find_if(marks->begin(), marks->end(), [](const auto& each) {
                return std::any_of(std::begin(k_marks), std::end(k_marks),
                                   [&](auto prefix) { return each.first.starts_with(prefix); });
            });
            if (mark != marks->end()) {
                found.push_back(fmt::format("{} ({})", base::escape(node.meta.name), base::escape(mark->first)));
            }
        }
        if (!distribution_of(node.kubelet).empty()) {
            found.push_back(fmt::format("{} (kubelet {})", base::escape(node.meta.name), base::escape(node.kubelet)));
        }
        if (std::any_of(std::begin(k_images), std::end(k_images),
                        [&](auto prefix) { return node.image.starts_with(prefix); })) {
            found.push_back(fmt::format("{} ({})", base::escape(node.meta.name), base::escape(node.image)));
        }
    }
    if (!found.empty()) { return {Outcome::fail, fmt::format("managed by another tool: {}", name_some(found))}; }
    if (input.inventory.nodes.empty()) { return {Outcome::skip, "there is no Node"}; }
    if (auto reason = input.inventory.pods_unknown_reason(); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    if (auto reason = unlisted_reason(input.inventory, "Plan"); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    return {Outcome::ok, "no node carries the marks of another tool"};
}

/// Pods of a program, and the kinds of the orders that it follows. Without a kind its Pods alone count.
struct Follower {
    std::string_view image;
    std::array<std::string_view, 2> kinds = {};
};
constexpr std::array<Follower, 6> k_followers{Follower{"fluxcd/helm-controller", {"HelmRelease"}},
                                              Follower{"fluxcd/kustomize-controller", {"Kustomization"}},
                                              Follower{"fluxcd/", {"HelmRelease", "Kustomization"}},
                                              Follower{"argoproj/argocd", {"Application"}},
                                              Follower{"/argocd:", {"Application"}},
                                              Follower{"/fleet-agent:", {}}};

Finding gitops_controllers(const CheckInput& input) {
    const auto& inventory = input.inventory;
    std::vector<std::string> found;
    bool is_suspended = false;
    for (const auto& order : inventory.orders) {
        if (order.kind == "Plan") { continue; }
        is_suspended = is_suspended || !order.is_active;
        if (!order.is_active) { continue; }
        found.push_back(fmt::format("{} {} {}", order.kind, base::escape(order.meta.full_name()),
                                    order.kind == "Application" ? "syncs by itself" : "is not suspended"));
    }
    for (const auto& pod : inventory.pods) {
        const auto* follower = std::find_if(k_followers.begin(), k_followers.end(), [&](const Follower& each) {
            return std::any_of(pod.containers.begin(), pod.containers.end(), [&](const auto& container) {
                return container.image.find(each.image) != std::string::npos;
            });
        });
        if (follower == k_followers.end()) { continue; }
        // A Pod that follows several kinds is one beside the controllers of each.
        const auto is_known = [&](auto kind) { return !kind.empty() && are_known(inventory, kind); };
        if (std::none_of(follower->kinds.begin(), follower->kinds.end(), is_known)) {
            found.push_back(base::escape(pod.meta.full_name()));
        }
    }
    if (!found.empty()) { return {Outcome::warn, name_some(found)}; }
    for (const auto* kind : {"HelmRelease", "Kustomization", "Application"}) {
        if (auto reason = unlisted_reason(inventory, kind); !reason.empty()) {
            return {Outcome::skip, std::move(reason)};
        }
    }
    if (auto reason = inventory.pods_unknown_reason(); !reason.empty()) {
        return {Outcome::skip, std::move(reason)};
    }
    return {Outcome::ok, is_suspended ? "what Flux and Argo CD apply is suspended"
                                      : "no Pod of Flux, Argo CD or Fleet runs"};
}

constexpr CheckRow k_order_rows[] = {
    {"reboot-daemons", reboot_daemons},
    {"other-orchestrators", other_orchestrators},
    {"gitops-controllers", gitops_controllers},
};

}  // namespace

std::span<const CheckRow> order_checks() noexcept { return k_order_rows; }

}  // namespace kmm::kubernetes
