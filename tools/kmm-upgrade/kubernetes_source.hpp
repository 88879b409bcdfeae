// SPDX-License-Identifier: Apache-2.0
// What verbs about versions of Kubernetes read: a cluster, or dumps of one, and the metadata of versions.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/call.hpp"
#include "kubernetes/catalogue.hpp"
#include "kubernetes/inventory.hpp"

namespace kmm::tool_upgrade {

/// --filename, --versions.
[[nodiscard]] std::vector<cli::Option> kubernetes_options();

/// How much of a cluster is read. Documents are always read whole.
enum class ReadExtent {
    control_plane,  ///< Nodes, and the static Pods of the control plane
    system,         ///< Nodes, and all Pods of kube-system
    everything,     ///< what checks look at
};

/// The objects of -f or --cluster, else of the API server that --kubeconfig and --context name or kubectl would find. With
/// ReadExtent::everything, kinds that this user may not list are noted in Inventory::unlisted.
/// Errors: usage "several-sources", "no-cluster"; from_diagnostics for documents; those of kube::load_connection and kube::Client.
[[nodiscard]] kubernetes::Inventory read_inventory(Call& call, ReadExtent extent);

/// --versions FILE, else kubernetes-versions.yaml of the state directory, else that of /etc/kmm-tools, else what is built in. Minors that
/// a file leaves out are those that are built in. Errors: those of sys::read_file; from_diagnostics with every fault.
[[nodiscard]] kubernetes::Catalogue read_versions(Call& call);

/// A version on the command line. Errors: usage "bad-version".
[[nodiscard]] kubernetes::Version version_argument(const std::string& text);

}  // namespace kmm::tool_upgrade
