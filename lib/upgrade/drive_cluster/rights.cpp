// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/rights.hpp"

#include "cluster/live/cluster_workloads.hpp"
#include "cluster/live/kube_store.hpp"
#include "cluster/seam/workloads.hpp"
#include "upgrade/drive_cluster/network_canary.hpp"

namespace kmm::drive {
namespace {

constexpr const char *k_system = "kube-system", *k_freeze = "kmm-upgrade-freeze";
constexpr const char* k_leases_group = "coordination.k8s.io";

}  // namespace

std::vector<kube::Rule> subject_rules(const upgrade::kubernetes::Subject& subject) {
    constexpr const char* k_policies_group = "admissionregistration.k8s.io";
    std::vector<kube::Rule> rules{
        {"list", "", "pods", "", "", ""},
        {"get", k_leases_group, "leases", "", "kube-node-lease", ""},
        {"list", "", "configmaps", "", k_system, ""},
        {"get", "", "configmaps", "", k_system, "kubeadm-config"},
        {"patch", "", "configmaps", "", k_system, "kubeadm-config"},
        // Which upgrade is under way; a patch needs create where there is no such object. The proof of the freeze is a
        // dry run of it.
        {"create", "", "configmaps", "", k_system, ""},
    };
    for (const char* verb : {"get", "patch", "delete"})
        rules.push_back({verb, "", "configmaps", "", k_system, k_freeze});
    const bool is_frozen = !subject.freeze.empty();
    for (const char* kind : {"validatingadmissionpolicies", "validatingadmissionpolicybindings"}) {
        rules.push_back({"delete", k_policies_group, kind, "", "", k_freeze});
        if (!is_frozen) continue;
        rules.push_back({"patch", k_policies_group, kind, "", "", k_freeze});
        rules.push_back({"create", k_policies_group, kind, "", "", ""});
    }
    if (subject.canary_image.empty()) return rules;
    const auto canary = NetworkCanary::rules();
    rules.insert(rules.end(), canary.begin(), canary.end());
    return rules;
}

std::vector<kube::Rule> upgrade_rules() {
    upgrade::kubernetes::Subject subject;
    subject.freeze = "24h";
    auto rules = cluster::kube_store_rules(cluster::KubeStore::Writes::nodes);
    for (const auto& more : {cluster::drain_rules(), subject_rules(subject)})
        rules.insert(rules.end(), more.begin(), more.end());
    for (const char* verb : {"get", "create", "update", "delete"})
        rules.push_back({verb, k_leases_group, "leases", "", k_system, ""});
    return rules;
}

}  // namespace kmm::drive
