// SPDX-License-Identifier: Apache-2.0
// What recipes ask of a live cluster.
#pragma once

#include <vector>

#include "kube/client.hpp"
#include "recipe/resource/facts.hpp"
#include "value/node.hpp"

namespace kmm::recipe::files {

/// The objects that facts are read from: Nodes, sets of mirrors, and on OpenShift ClusterVersion, Proxy, ImageStream
/// driver-toolkit and ConfigMap machine-config-osimageurl. Kinds that are not served are left out, and sets of mirrors
/// that the account may not list. Errors: those of the client.
[[nodiscard]] std::vector<value::Document> read_cluster_objects(kube::Client& client);

/// The SpecialResources of the server, and the ConfigMaps that cm:// repositories of their charts name. None where the
/// kind is not served. Errors: those of the client.
[[nodiscard]] std::vector<value::Document> read_cluster_resources(kube::Client& client);

/// Fills in the version of the server and the kinds that it serves, where `facts` do not have them. One request for
/// each group and version; a group that does not answer is left out. Errors: those of the client.
void add_server_facts(kube::Client& client, plan::Facts& facts);

}  // namespace kmm::recipe::files
