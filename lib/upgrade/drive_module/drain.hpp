// SPDX-License-Identifier: Apache-2.0
// Emptying nodes: what is said before anything is changed, and what a dry run says instead of doing it.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cluster/seam/workloads.hpp"
#include "plan/fleet/drain.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/module_nodes/dry_run.hpp"

namespace kmm::drive {

/// What the options of a run let a drain do. Errors: those of plan::users_of and of `workloads`.
[[nodiscard]] plan::DrainRules drain_rules_of(const upgrade::Options& options, const api::Module& module,
                                              cluster::Workloads& workloads);

struct DrainReview {
    std::vector<std::string> warnings;  ///< what kubectl warns of, and budgets that never allow an eviction
    std::string own_node;               ///< the node of the run that this process runs on, in a Pod; "" for none
};

/// Looks at the Pods of every node of `run`. Changes nothing.
/// Errors: checks_failed "pods-not-evictable" with one detail per node; those of drain_rules_of.
[[nodiscard]] DrainReview review_drain(cluster::Workloads& workloads, const api::Module& module,
                                       const upgrade::Run& run);

/// The node of `run` that this process runs on, in a Pod; "" for none. Lists the Pods of one node after the other until
/// it is found.
[[nodiscard]] std::string own_node_of(cluster::Workloads& workloads, const upgrade::Run& run);

/// Puts the node that this process runs on at the end, so that what happens to it ends nothing but its own step. An
/// order that a person has written down (a file) stays. True if that has changed anything.
bool put_last(upgrade::Run& run, const std::string& own_node);

/// Reads through `inner` and only tells what would be done; evicted Pods are gone at once. Thread safe.
class DryWorkloads final : public cluster::Workloads {
public:
    DryWorkloads(cluster::Workloads& inner, ActionSink sink) : inner_(inner), sink_(std::move(sink)) {}
    void expect_rights(Leaving) override {}
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
