// SPDX-License-Identifier: Apache-2.0
// Whether KMM's operator is at work in a cluster.
#pragma once

#include <string>
#include <vector>

#include "kube/client.hpp"

namespace kmm::cluster {

/// The label that KMM's own Pods bear, with the value "kmm"; its worker Pods do too, as component "worker" (facts: KMM 1.2).
inline constexpr const char* k_label_part_of = "app.kubernetes.io/part-of";

/// What was found of an operator.
struct OperatorSigns {
    std::vector<std::string> pods;  ///< NAMESPACE/NAME of its Pods that have not ended, sorted: it runs
    std::string config;             ///< a NodeModulesConfig that somebody else than kmm-tools wrote: it has run at least; "" for none
    [[nodiscard]] bool any() const noexcept { return !pods.empty() || !config.empty(); }
};

/// Two lists; NodeModulesConfigs are looked at only where no Pod was found. Who has written one is in metadata.managedFields; one with
/// a Node as owner is KMM's (facts: KMM 4.2). Errors: those of kube::Client.
[[nodiscard]] OperatorSigns look_for_operator(kube::Client& client);

}  // namespace kmm::cluster
