// SPDX-License-Identifier: Apache-2.0
// Kinds of objects as the API's paths name them.
#pragma once

#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::kube {

enum class Scope { cluster, namespaced };

/// One kind that is served under a path of its own.
struct Resource {
    std::string group;    ///< "" for core
    std::string version;  ///< "v1"
    std::string plural;   ///< "nodes"
    std::string kind;     ///< "Node"
    Scope scope = Scope::namespaced;

    /// "v1", "apps/v1".
    [[nodiscard]] std::string api_version() const;
    /// As kubectl says it: "nodes", "modules.kmm.sigs.x-k8s.io".
    [[nodiscard]] std::string full_name() const;
};

/// Which object of a kind. Without `name` it is all of them, without `namespace_` those of every namespace.
struct Key {
    std::string namespace_;  ///< left out for kinds of the whole cluster
    std::string name;

    /// "NAMESPACE/NAME" or "NAME".
    [[nodiscard]] std::string to_string() const;
};
/// That of an object.
[[nodiscard]] Key key_of(const value::Node& object);

/// "/apis/apps/v1/namespaces/NS/daemonsets/NAME/status"; `subresource` "" for none. Names are percent-encoded.
[[nodiscard]] std::string path_of(const Resource& resource, const Key& key, std::string_view subresource = "");

/// The kinds this toolkit deals with.
namespace resources {
extern const Resource k_nodes, k_pods, k_namespaces, k_secrets, k_config_maps, k_service_accounts, k_events;
extern const Resource k_daemon_sets, k_device_classes, k_leases, k_custom_resource_definitions,
    k_pod_disruption_budgets;
extern const Resource k_resource_claims;
extern const Resource k_modules, k_module_images_configs, k_node_modules_configs, k_managed_cluster_modules,
    k_managed_clusters;
extern const Resource k_preflight_validations;
extern const Resource k_access_reviews;
}  // namespace resources

}  // namespace kmm::kube
