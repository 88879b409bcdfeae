// SPDX-License-Identifier: Apache-2.0
// What the API objects of a cluster say of its Kubernetes, from an API server or from documents, and the one object
// that a rollback writes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/live/cluster.hpp"
#include "kube/client.hpp"
#include "kubernetes/inventory/inventory.hpp"

namespace kmm::drive {

inline const kube::Resource k_deployments{"apps", "v1", "deployments", "Deployment", kube::Scope::namespaced};

/// How much of a cluster is read. Documents are always read whole.
enum class ReadExtent {
    nodes,          ///< Nodes alone
    control_plane,  ///< Nodes, and the static Pods of the control plane
    system,         ///< Nodes, and all Pods of kube-system
    everything,     ///< what checks of a cluster as it is look at
    upgrade,        ///< also what checks of an upgrade look at: who has written which objects, what Helm has deployed
    releases,       ///< also the revisions that Helm keeps
};

/// All objects of an API server. From ReadExtent::everything on, kinds that this user may not list are noted in
/// Inventory::unlisted. Errors: those of kube::Client; from_diagnostics.
[[nodiscard]] kubernetes::Inventory read_inventory(kube::Client& client, ReadExtent extent);
/// All objects of documents: files, directories, "-". Errors: from_diagnostics with every fault; those of
/// cluster::read_documents.
[[nodiscard]] kubernetes::Inventory read_inventory(const std::vector<std::string>& names);

/// Thread safe. Errors of all members: those of read_inventory.
class ClusterView {
public:
    virtual ~ClusterView() = default;
    [[nodiscard]] virtual kubernetes::Inventory read(ReadExtent extent) = 0;
    /// The Node of that name, the Pods of kube-system on it, and the ConfigMap kubeadm-config. There is no Node in it
    /// if there is none. An API server is asked for nothing else: it costs the same in a cluster of any size.
    [[nodiscard]] virtual kubernetes::Inventory about(const std::string& node) = 0;
    /// The static Pods of every control plane, without the Nodes.
    [[nodiscard]] virtual kubernetes::Inventory control_planes() = 0;
    /// When the kubelet of that node has renewed its Lease, as it says itself; nullopt if that is not known.
    [[nodiscard]] virtual std::optional<std::string> renewal(const std::string& node) = 0;
    /// Writes `text` as the ClusterConfiguration of ConfigMap kubeadm-config; nothing if it is that already. Errors
    /// also: not_found if there is no such ConfigMap; "conflict"; of documents those of edit::edit_text and
    /// cluster::replace_file.
    virtual void put_cluster_configuration(const std::string& text) = 0;
    /// What keeps the API server from being ready, "" if nothing does or there is none.
    [[nodiscard]] virtual std::string unready_reason() = 0;
};

/// The ClusterConfiguration of ConfigMap kubeadm-config, as it stands there; nullopt if it is not in `seen`.
[[nodiscard]] std::optional<std::string> cluster_configuration_text(const kubernetes::Inventory& seen);

/// Of an open cluster, which must outlive it.
[[nodiscard]] std::unique_ptr<ClusterView> view_of(cluster::Cluster& cluster);

}  // namespace kmm::drive
