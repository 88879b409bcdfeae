// SPDX-License-Identifier: Apache-2.0
// Emptying nodes: what is said before anything is changed, and what a dry run says instead of doing it.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cluster/workloads.hpp"
#include "drive/dry_run.hpp"
#include "plan/drain.hpp"
#include "upgrade/run.hpp"

namespace kmm::drive {

/// What the options of a run let a drain do. Errors: those of plan::users_of and of `workloads`.
[[nodiscard]] plan::DrainRules drain_rules_of(const upgrade::Options& options, const api::Module& module, cluster::Workloads& workloads);

/// Looks at the Pods of every node of `run`. Changes nothing. Returns warnings: what kubectl warns of, and budgets that never
/// allow an eviction.
/// Errors: checks_failed "pods-not-evictable" with one detail per node; those of drain_rules_of.
[[nodiscard]] std::vector<std::string> review_drain(cluster::Workloads& workloads, const api::Module& module, const upgrade::Run& run);

/// Reads through `inner` and only tells what would be done; evicted Pods are gone at once. Thread safe.
class DryWorkloads final : public cluster::Workloads {
public:
    DryWorkloads(cluster::Workloads& inner, ActionSink sink) : inner_(inner), sink_(std::move(sink)) {}
    void require_rights(Leaving) override {}
    cluster::Cordon cordon(const std::string& node, const std::string& owner) override;
    cluster::Cordon uncordon(const std::string& node, const std::string& owner) override;
    [[nodiscard]] std::vector<api::WorkloadPod> pods(const std::string& node) override;
    [[nodiscard]] std::vector<api::DisruptionBudget> budgets() override { return inner_.budgets(); }
    [[nodiscard]] std::vector<api::DeviceClaim> claims() override { return inner_.claims(); }
    cluster::PodEviction evict(const api::WorkloadPod& pod, std::optional<int> grace_seconds) override;

private:
    cluster::Workloads& inner_;
    ActionSink sink_;
    std::mutex mutex_;
    std::set<std::string> evicted_;                  ///< uids
    std::map<std::string, std::string> nodes_;       ///< uid to node, as listed
};

}  // namespace kmm::drive
