// SPDX-License-Identifier: Apache-2.0
// The API versions that Helm's client knows. Source: `reference api-versions` in tests/recipe/reference.
#include "recipe/chart/render.hpp"

namespace kmm::recipe::chart {

const std::vector<std::string>& default_api_versions() {
    static const std::vector<std::string> versions{
        "v1", "admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1alpha1",
        "admissionregistration.k8s.io/v1beta1", "internal.apiserver.k8s.io/v1alpha1", "apps/v1", "apps/v1beta1",
        "apps/v1beta2", "authentication.k8s.io/v1", "authentication.k8s.io/v1alpha1",
        "authentication.k8s.io/v1beta1", "authorization.k8s.io/v1", "authorization.k8s.io/v1beta1",
        "autoscaling/v1", "autoscaling/v2", "batch/v1", "batch/v1beta1", "certificates.k8s.io/v1",
        "certificates.k8s.io/v1beta1", "certificates.k8s.io/v1alpha1", "coordination.k8s.io/v1alpha2",
        "coordination.k8s.io/v1beta1", "coordination.k8s.io/v1", "discovery.k8s.io/v1", "discovery.k8s.io/v1beta1",
        "events.k8s.io/v1", "events.k8s.io/v1beta1", "extensions/v1beta1", "flowcontrol.apiserver.k8s.io/v1",
        "flowcontrol.apiserver.k8s.io/v1beta1", "flowcontrol.apiserver.k8s.io/v1beta2",
        "flowcontrol.apiserver.k8s.io/v1beta3", "lifecycle.k8s.io/v1alpha1", "networking.k8s.io/v1",
        "networking.k8s.io/v1beta1", "node.k8s.io/v1", "node.k8s.io/v1alpha1", "node.k8s.io/v1beta1", "policy/v1",
        "policy/v1beta1", "rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1beta1",
        "rbac.authorization.k8s.io/v1alpha1", "resource.k8s.io/v1", "resource.k8s.io/v1beta2",
        "resource.k8s.io/v1beta1", "resource.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha3",
        "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1", "storage.k8s.io/v1beta1", "storage.k8s.io/v1",
        "storage.k8s.io/v1alpha1", "storagemigration.k8s.io/v1", "storagemigration.k8s.io/v1beta1",
        "apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1"};
    return versions;
}

}  // namespace kmm::recipe::chart
