// SPDX-License-Identifier: Apache-2.0
// Which nodes a Module is for: selectors, taints and tolerations.
#pragma once

#include <vector>

#include "api/labels.hpp"
#include "api/types.hpp"

namespace kmm::plan {

/// True if every taint with effect NoSchedule or NoExecute is tolerated (facts: KMM 4.1). On false `blocking`, if
/// given, receives the first taint that is not.
[[nodiscard]] bool tolerates(const std::vector<api::Toleration>& tolerations, const std::vector<api::Taint>& taints,
                             api::Taint* blocking = nullptr);
/// Those that stay: what Kubernetes itself puts on a node, as for a cordon, is gone when the node is back.
[[nodiscard]] std::vector<api::Taint> lasting_taints(const std::vector<api::Taint>& taints);
/// The Module's tolerations followed by KMM's three internal ones.
[[nodiscard]] std::vector<api::Toleration> loader_tolerations(const api::Module& module);
/// Equality on every pair of the selector.
[[nodiscard]] bool selects(const api::Labels& selector, const api::Labels& labels);

}  // namespace kmm::plan
