// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/inventory/removed_apis.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace kmm::kubernetes {
namespace {

constexpr std::string_view k_roles = "Role RoleBinding ClusterRole ClusterRoleBinding";
constexpr std::string_view k_flows = "FlowSchema PriorityLevelConfiguration";
constexpr std::string_view k_policies = "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding";
constexpr std::string_view k_devices = "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice";

constexpr RemovedApi k_removed[] = {
    {16, "extensions/v1beta1", "Deployment DaemonSet ReplicaSet", "apps/v1"},
    {16, "extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1"},
    {16, "extensions/v1beta1", "PodSecurityPolicy", "policy/v1beta1, until v1.25"},
    {16, "apps/v1beta1", "Deployment StatefulSet ControllerRevision", "apps/v1"},
    {16, "apps/v1beta2", "Deployment StatefulSet DaemonSet ReplicaSet ControllerRevision", "apps/v1"},
    {22, "admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration MutatingWebhookConfiguration",
     "admissionregistration.k8s.io/v1"},
    {22, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "apiextensions.k8s.io/v1"},
    {22, "apiregistration.k8s.io/v1beta1", "APIService", "apiregistration.k8s.io/v1"},
    {22, "authentication.k8s.io/v1beta1", "TokenReview", "authentication.k8s.io/v1"},
    {22, "authorization.k8s.io/v1beta1",
     "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
     "authorization.k8s.io/v1"},
    {22, "certificates.k8s.io/v1beta1", "CertificateSigningRequest", "certificates.k8s.io/v1"},
    {22, "coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1"},
    {22, "extensions/v1beta1", "Ingress", "networking.k8s.io/v1"},
    {22, "networking.k8s.io/v1beta1", "Ingress IngressClass", "networking.k8s.io/v1"},
    {22, "rbac.authorization.k8s.io/v1alpha1", k_roles, "rbac.authorization.k8s.io/v1"},
    {22, "rbac.authorization.k8s.io/v1beta1", k_roles, "rbac.authorization.k8s.io/v1"},
    {22, "scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"},
    {22, "storage.k8s.io/v1beta1", "CSIDriver CSINode StorageClass VolumeAttachment", "storage.k8s.io/v1"},
    {24, "storage.k8s.io/v1alpha1", "CSIStorageCapacity VolumeAttachment", "storage.k8s.io/v1"},
    {25, "autoscaling/v2beta1", "HorizontalPodAutoscaler", "autoscaling/v2"},
    {25, "batch/v1beta1", "CronJob", "batch/v1"},
    {25, "discovery.k8s.io/v1beta1", "EndpointSlice", "discovery.k8s.io/v1"},
    {25, "events.k8s.io/v1beta1", "Event", "events.k8s.io/v1"},
    {25, "node.k8s.io/v1beta1", "RuntimeClass", "node.k8s.io/v1"},
    {25, "policy/v1beta1", "PodDisruptionBudget", "policy/v1"},
    {25, "policy/v1beta1", "PodSecurityPolicy", ""},
    {26, "autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2"},
    {26, "flowcontrol.apiserver.k8s.io/v1beta1", k_flows, "flowcontrol.apiserver.k8s.io/v1beta3, from v1.29 on v1"},
    {27, "resource.k8s.io/v1alpha1", "ResourceClass ResourceClaim ResourceClaimTemplate PodScheduling",
     "resource.k8s.io/v1alpha2"},
    {27, "storage.k8s.io/v1beta1", "CSIStorageCapacity", "storage.k8s.io/v1"},
    {29, "flowcontrol.apiserver.k8s.io/v1beta2", k_flows, "flowcontrol.apiserver.k8s.io/v1"},
    {29, "networking.k8s.io/v1alpha1", "ClusterCIDR", ""},
    {31, "resource.k8s.io/v1alpha2",
     "ResourceClass ResourceClaim ResourceClaimTemplate ResourceClaimParameters ResourceClassParameters "
     "ResourceSlice PodSchedulingContext",
     "resource.k8s.io/v1alpha3"},
    {32, "admissionregistration.k8s.io/v1alpha1", k_policies, "admissionregistration.k8s.io/v1"},
    {32, "authentication.k8s.io/v1alpha1", "SelfSubjectReview", "authentication.k8s.io/v1"},
    {32, "flowcontrol.apiserver.k8s.io/v1beta3", k_flows, "flowcontrol.apiserver.k8s.io/v1"},
    {32, "resource.k8s.io/v1alpha3", "PodSchedulingContext", ""},
    {33, "authentication.k8s.io/v1beta1", "SelfSubjectReview", "authentication.k8s.io/v1"},
    {33, "networking.k8s.io/v1alpha1", "IPAddress ServiceCIDR", "networking.k8s.io/v1"},
    {34, "admissionregistration.k8s.io/v1beta1", k_policies, "admissionregistration.k8s.io/v1"},
    {34, "resource.k8s.io/v1alpha3", k_devices, "resource.k8s.io/v1"},
    {35, "storage.k8s.io/v1alpha1", "VolumeAttributesClass", "storage.k8s.io/v1"},
    {35, "storagemigration.k8s.io/v1alpha1", "StorageVersionMigration", "storagemigration.k8s.io/v1beta1"},
    {37, "networking.k8s.io/v1beta1", "IPAddress ServiceCIDR", "networking.k8s.io/v1"},
    {37, "storage.k8s.io/v1beta1", "VolumeAttributesClass", "storage.k8s.io/v1"},
    {38, "resource.k8s.io/v1beta1", k_devices, "resource.k8s.io/v1"},
};

}  // namespace

std::span<const RemovedApi> removed_apis() noexcept { return k_removed; }

bool names_kind(const RemovedApi& api, std::string_view kind) noexcept {
    for (auto at = kind.empty() ? std::string_view::npos : api.kinds.find(kind); at != std::string_view::npos;
         at = api.kinds.find(kind, at + 1)) {
        const auto end = at + kind.size();
        if ((at == 0 || api.kinds[at - 1] == ' ') && (end == api.kinds.size() || api.kinds[end] == ' ')) {
            return true;
        }
    }
    return false;
}

const RemovedApi* find_removed_api(std::string_view group_version, std::string_view kind) noexcept {
    const auto found = std::find_if(std::begin(k_removed), std::end(k_removed), [&](const auto& each) {
        return each.group_version == group_version && names_kind(each, kind);
    });
    return found == std::end(k_removed) ? nullptr : &*found;
}

bool is_removable(std::string_view kind) noexcept {
    return std::any_of(std::begin(k_removed), std::end(k_removed),
                       [&](const auto& each) { return names_kind(each, kind); });
}

std::string plural_of(std::string_view kind) {
    std::string word = base::to_lower(kind);
    if (word.ends_with("s")) return word + "es";
    if (!word.ends_with("y")) return word + "s";
    word.pop_back();
    return word + "ies";
}

}  // namespace kmm::kubernetes
