// SPDX-License-Identifier: Apache-2.0
// Selector, taints and tolerations. Source: Kubernetes' component-helpers corev1; facts: KMM 4.1.
#include <algorithm>
#include <iterator>

#include "plan/kmm/eligible.hpp"

namespace kmm::plan {

namespace {

bool matches(const api::Toleration& toleration, const api::Taint& taint) {
    if (!toleration.effect.empty() && toleration.effect != taint.effect) { return false; }
    if (!toleration.key.empty() && toleration.key != taint.key) { return false; }
    if (toleration.operator_ == "Exists") { return true; }
    const bool equal = toleration.operator_.empty() || toleration.operator_ == "Equal";
    return equal && toleration.value == taint.value;
}

api::Toleration pressure(const char* key) {
    api::Toleration toleration;
    toleration.key = key;
    toleration.operator_ = "Exists";
    toleration.effect = "NoSchedule";
    return toleration;
}

}  // namespace

bool tolerates(const std::vector<api::Toleration>& tolerations, const std::vector<api::Taint>& taints,
               api::Taint* blocking) {
    for (const auto& taint : taints) {
        if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") { continue; }
        const bool tolerated =
            std::any_of(tolerations.begin(), tolerations.end(),
                        [&](const api::Toleration& toleration) { return matches(toleration, taint); });
        if (tolerated) { continue; }
        if (blocking != nullptr) { *blocking = taint; }
        return false;
    }
    return true;
}

std::vector<api::Taint> lasting_taints(const std::vector<api::Taint>& taints) {
    std::vector<api::Taint> result;
    std::copy_if(taints.begin(), taints.end(), std::back_inserter(result),
                 [](const api::Taint& taint) { return !taint.key.starts_with("node.kubernetes.io/"); });
    return result;
}

std::vector<api::Toleration> loader_tolerations(const api::Module& module) {
    std::vector<api::Toleration> result = module.tolerations;
    for (const auto* key : {"node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
                            "node.kubernetes.io/pid-pressure"}) {
        result.push_back(pressure(key));
    }
    return result;
}

bool selects(const api::Labels& selector, const api::Labels& labels) {
    return std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
        const auto found = labels.find(wanted.first);
        return found != labels.end() && found->second == wanted.second;
    });
}

}  // namespace kmm::plan
