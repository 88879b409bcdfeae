// SPDX-License-Identifier: Apache-2.0
// The rights that the store and a drain need.
#include "api/labels.hpp"
#include "cluster/live/cluster_workloads.hpp"
#include "cluster/live/kube_store.hpp"

namespace kmm::cluster {

std::vector<kube::Rule> kube_store_rules(KubeStore::Writes writes) {
    std::vector<kube::Rule> rules;
    if (writes == KubeStore::Writes::nodes) {
        for (const char* verb : {"get", "list", "patch"}) { rules.push_back({verb, "", "nodes", "", "", ""}); }
        rules.push_back({"get", "", "namespaces", "", "", "kube-system"});
        return rules;
    }
    const std::string kmm(api::k_group);
    for (const char* verb : {"get", "list", "watch", "patch"}) { rules.push_back({verb, "", "nodes", "", "", ""}); }
    for (const char* verb : {"list", "watch"}) {
        rules.push_back({verb, kmm, "modules", "", "", ""});
        rules.push_back({verb, "", "pods", "", "", ""});
    }
    for (const char* verb : {"get", "list", "watch", "create", "patch"}) {
        const bool changes = std::string_view(verb) == "create" || std::string_view(verb) == "patch";
        if (changes && writes != KubeStore::Writes::all) { continue; }
        rules.push_back({verb, kmm, "nodemodulesconfigs", "", "", ""});
    }
    if (writes == KubeStore::Writes::all) { rules.push_back({"patch", kmm, "nodemodulesconfigs", "status", "", ""}); }
    rules.push_back({"get", "", "namespaces", "", "", "kube-system"});
    return rules;
}

std::vector<kube::Rule> drain_rules() {
    return {{"create", "", "pods", "eviction", "", ""},
            {"get", "apps", "daemonsets", "", "", ""},
            {"list", "policy", "poddisruptionbudgets", "", "", ""}};
}

}  // namespace kmm::cluster
