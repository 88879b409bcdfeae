// SPDX-License-Identifier: Apache-2.0
// What runs: the version of every control-plane component and kubelet, as Pods and Nodes say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kubernetes/inventory/inventory.hpp"
#include "kubernetes/versions/version.hpp"

namespace kmm::kubernetes {

/// The static Pods of a control-plane node whose images carry the version of Kubernetes, in the order of messages.
inline constexpr std::string_view k_components[] = {"kube-apiserver", "kube-controller-manager", "kube-scheduler"};

/// One component on one node.
struct Running {
    std::string component;           ///< of k_components, "etcd", "kube-proxy" or "kubelet"
    std::string node;
    std::optional<Version> version;  ///< nullopt if it was not seen or its version could not be read
    std::string problem;             ///< why not, "" with a version
    Position position;
    Exit exit = Exit::data;          ///< not_found where the object is missing
    const PodObject* pod = nullptr;  ///< of the inventory; nullptr for a kubelet and for what was not seen
};

/// Sorted by node.
struct Observation {
    std::vector<Running> control_plane;  ///< three for each control-plane node
    std::vector<Running> kubelets;       ///< one for each node
    std::vector<Running> etcd;           ///< static Pods of etcd that were seen
    std::vector<Running> proxies;        ///< Pods of kube-proxy that were seen
    std::vector<std::string> control_plane_nodes;

    /// What could not be observed of the control plane and the kubelets; also no-nodes and no-control-plane. Empty if
    /// versions can be relied on.
    Diagnostics faults;

    /// The lowest and highest version of the control plane, and of the kubelets; nullopt if any of them is not known.
    [[nodiscard]] std::optional<Version> lowest_control_plane() const;
    [[nodiscard]] std::optional<Version> highest_control_plane() const;
    [[nodiscard]] std::optional<Version> lowest_kubelet() const;
    [[nodiscard]] std::optional<Version> highest_kubelet() const;
    /// The lowest of the three on this node.
    [[nodiscard]] std::optional<Version> control_plane_of(std::string_view node) const;
};

/// What to do where the nodes are of a distribution that has no control plane of kubeadm, for people; "" for others.
[[nodiscard]] std::string distribution_hint(const Inventory& inventory);
/// The distribution that a version of the kubelet names, as "k3s"; "" for those that kubeadm may have made.
[[nodiscard]] std::string_view distribution_of(std::string_view kubelet) noexcept;

/// Looks at the static Pods of each node that is labelled as control plane and at each Node. The version of a component
/// is the tag of the image that its container runs, else of the image in its spec. `inventory` must outlive the result.
/// Faults: no-nodes, no-control-plane, not-seen (exit 66), bad-version (exit 65).
[[nodiscard]] Observation observe(const Inventory& inventory);

}  // namespace kmm::kubernetes
