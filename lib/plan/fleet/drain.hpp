// SPDX-License-Identifier: Apache-2.0
// Which Pods of a node a drain evicts: the filters of `kubectl drain`, in its order and with its messages (facts
// reliability 4.2).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/workload.hpp"

namespace kmm::plan {

/// What to do with Pods that nothing starts again, and with Pods whose files would be lost.
enum class OnLoss { refuse, evict };

struct DrainRules {
    OnLoss unmanaged = OnLoss::refuse;   ///< --force
    OnLoss local_data = OnLoss::refuse;  ///< --delete-emptydir-data
    /// Only Pods that use a device count: those that ask for one of these resources or have one of these claims
    /// (NAMESPACE/NAME). nullopt: all Pods.
    struct Users {
        std::set<std::string> resources, claims;
    };
    std::optional<Users> users;
};

struct Drain {
    std::vector<api::WorkloadPod>
        evict;  ///< in the order given; those that are ending already only have to be waited for
    /// "cannot delete REASON: NS/NAME, NS/NAME", one for each reason, ten names at most. Nothing may be evicted while
    /// there is one.
    std::vector<std::string> refusals;
    /// "ignoring DaemonSet-managed Pods: NS/NAME", "deleting Pods with local storage: ...", as kubectl warns; of the
    /// Pod of this process, which is never evicted, "ignoring the Pod that this runs in: NS/NAME".
    std::vector<std::string> warnings;
};

/// Mirror Pods and worker Pods of KMM are left alone without a word. O(pods).
[[nodiscard]] Drain plan_drain(const std::vector<api::WorkloadPod>& pods, const DrainRules& rules);

/// Who uses the devices of `module`: Pods that ask for one of `resources`, and those with one of `claims` that asks for
/// a DeviceClass of the Module or was given a device of its DRA driver. Which resources a device plugin offers is known
/// to kubelets only: they have to be named. Errors: checks_failed "resources-unknown" for a Module with a device plugin
/// and no `resources`; "no-users" for one with neither device plugin nor DRA driver and no `resources`.
[[nodiscard]] DrainRules::Users users_of(const api::Module& module, const std::vector<std::string>& resources,
                                         const std::vector<api::DeviceClaim>& claims);

/// Budgets that select one of `pods` and by their spec never allow an eviction, one text for each:
/// "PodDisruptionBudget NS/NAME never allows an eviction (maxUnavailable 0): NS/POD, ...".
[[nodiscard]] std::vector<std::string> hopeless_budgets(const std::vector<api::DisruptionBudget>& budgets,
                                                        const std::vector<api::WorkloadPod>& pods);

}  // namespace kmm::plan
