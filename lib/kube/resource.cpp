// SPDX-License-Identifier: Apache-2.0
#include "kube/resource.hpp"

#include "net/url.hpp"

namespace kmm::kube {

std::string Resource::api_version() const { return group.empty() ? version : group + "/" + version; }

std::string Resource::full_name() const { return group.empty() ? plural : plural + "." + group; }

std::string Key::to_string() const { return namespace_.empty() ? name : namespace_ + "/" + name; }

Key key_of(const value::Node& object) {
    return {object.get_string({"metadata", "namespace"}), object.get_string({"metadata", "name"})};
}

std::string path_of(const Resource& resource, const Key& key, std::string_view subresource) {
    std::string path = (resource.group.empty() ? "/api/" : "/apis/") + resource.api_version();
    if (resource.scope == Scope::namespaced && !key.namespace_.empty()) {
        path += "/namespaces/" + net::percent_encode(key.namespace_);
    }
    path += "/" + resource.plural;
    if (!key.name.empty()) { path += "/" + net::percent_encode(key.name); }
    if (!subresource.empty()) { path += "/" + std::string(subresource); }
    return path;
}

namespace resources {
const Resource k_nodes{"", "v1", "nodes", "Node", Scope::cluster};
const Resource k_pods{"", "v1", "pods", "Pod", Scope::namespaced};
const Resource k_namespaces{"", "v1", "namespaces", "Namespace", Scope::cluster};
const Resource k_secrets{"", "v1", "secrets", "Secret", Scope::namespaced};
const Resource k_config_maps{"", "v1", "configmaps", "ConfigMap", Scope::namespaced};
const Resource k_service_accounts{"", "v1", "serviceaccounts", "ServiceAccount", Scope::namespaced};
const Resource k_events{"", "v1", "events", "Event", Scope::namespaced};
const Resource k_daemon_sets{"apps", "v1", "daemonsets", "DaemonSet", Scope::namespaced};
const Resource k_device_classes{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", Scope::cluster};
const Resource k_leases{"coordination.k8s.io", "v1", "leases", "Lease", Scope::namespaced};
const Resource k_custom_resource_definitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                             "CustomResourceDefinition", Scope::cluster};
const Resource k_pod_disruption_budgets{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget",
                                        Scope::namespaced};
const Resource k_resource_claims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", Scope::namespaced};
const Resource k_modules{"kmm.sigs.x-k8s.io", "v1beta1", "modules", "Module", Scope::namespaced};
const Resource k_module_images_configs{"kmm.sigs.x-k8s.io", "v1beta1", "moduleimagesconfigs", "ModuleImagesConfig",
                                       Scope::namespaced};
const Resource k_node_modules_configs{"kmm.sigs.x-k8s.io", "v1beta1", "nodemodulesconfigs", "NodeModulesConfig",
                                      Scope::cluster};
const Resource k_managed_cluster_modules{"hub.kmm.sigs.x-k8s.io", "v1beta1", "managedclustermodules",
                                         "ManagedClusterModule", Scope::cluster};
const Resource k_managed_clusters{"cluster.open-cluster-management.io", "v1", "managedclusters", "ManagedCluster",
                                  Scope::cluster};
const Resource k_preflight_validations{"kmm.sigs.x-k8s.io", "v1beta2", "preflightvalidations", "PreflightValidation",
                                       Scope::cluster};
const Resource k_access_reviews{"authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
                                Scope::cluster};
}  // namespace resources

}  // namespace kmm::kube
