// SPDX-License-Identifier: Apache-2.0
// The seam to what runs on nodes besides the module: cordons, Pods and their evictions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/workload.hpp"
#include "cluster/seam/store.hpp"

namespace kmm::cluster {

/// Whether a node gets new Pods, and who said that it does not.
struct Cordon {
    bool unschedulable = false;
    std::string owner;  ///< text of the annotation kmmtools.dev/cordoned-by, "" for none
    friend bool operator==(const Cordon&, const Cordon&) = default;
};

/// How asking for one eviction went. `blocked`: not now, as a PodDisruptionBudget, an admission webhook or a busy API
/// server has it; `never`: the Pod is under several budgets, which the API server does not evaluate; `ending`: the
/// Namespace is going away and the Pod with it.
struct PodEviction {
    enum class Outcome { evicted, gone, blocked, never, ending } outcome = Outcome::evicted;
    std::string reason;  ///< of blocked and never, in the server's words
    std::optional<std::chrono::milliseconds> retry_after;
};

class Workloads {
public:
    virtual ~Workloads() = default;
    /// `users`: only Pods that use a device are evicted, which needs one right more.
    enum class Leaving { all, users };
    /// The rights that a drain needs are asked for with those of the store, as KubeStore::expect_rights. Sends nothing.
    virtual void expect_rights(Leaving leaving) = 0;
    /// Sets spec.unschedulable and the annotation, in one write, unless the node is unschedulable already. Returns what
    /// is there now: with another owner than `owner` it is somebody else's cordon, and nothing was written. Errors:
    /// not_found "node-not-found"; conflict; those of the store.
    virtual Cordon cordon(const std::string& node, const std::string& owner) = 0;
    /// Takes both away, in one write, if the annotation says `owner`; else writes nothing. Returns what is there now.
    /// Errors: as cordon.
    virtual Cordon uncordon(const std::string& node, const std::string& owner) = 0;
    /// Every Pod that is bound to the node, sorted by namespace and name. That of this process is marked.
    [[nodiscard]] virtual std::vector<api::WorkloadPod> pods(const std::string& node) = 0;
    [[nodiscard]] virtual std::vector<api::DisruptionBudget> budgets() = 0;
    /// All ResourceClaims; none where the API server has no such kind.
    [[nodiscard]] virtual std::vector<api::DeviceClaim> claims() = 0;
    /// `grace_seconds`: nullopt for the Pod's own.
    virtual PodEviction evict(const api::WorkloadPod& pod, std::optional<int> grace_seconds) = 0;
};

}  // namespace kmm::cluster
