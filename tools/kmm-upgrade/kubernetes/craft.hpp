// SPDX-License-Identifier: Apache-2.0
// How nodes of a Kubernetes cluster are worked on, and how the runs of one way follow each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kmm-upgrade/session/walk.hpp"
#include "upgrade/drive_cluster/cluster_view.hpp"
#include "upgrade/drive_kubernetes/plan_runs.hpp"

namespace kmm::tool_upgrade {

/// --via over what `options` have. Errors: usage "bad-value" for a way that this upgrade cannot take; those of
/// Reach::choose.
void choose_kubernetes_reach(Access& access, upgrade::Options& options, const cluster::Place& place);

/// What nodes are reached for, by a run of that lineage.
[[nodiscard]] Target kubernetes_target(const std::string& lineage);
/// Rights that a run needs besides those of every upgrade of Kubernetes.
[[nodiscard]] std::vector<kube::Rule> kubernetes_rules(const upgrade::kubernetes::Subject& subject);
/// What reaches the nodes of a run of that lineage. `to_change`: takes the Lease on an API server, or the lock of the
/// directory.
[[nodiscard]] std::unique_ptr<cluster::NodeRunner> kubernetes_runner(Access& access, const upgrade::Options& options,
                                                                     const std::string& lineage, bool to_change,
                                                                     const std::vector<kube::Rule>& rights);

/// What reaches the nodes of the cluster of the command line to ask them, by --via over what `options` have: no run
/// does. Opens the cluster where Pods are made. Errors: those of choose_kubernetes_reach.
[[nodiscard]] std::unique_ptr<cluster::NodeRunner> asking_runner(Access& access, upgrade::Options options);

/// Takes the Lease of Kubernetes upgrades of the open cluster, or the lock of its directory. Errors: those of
/// ClusterAccess::secure.
void hold_kubernetes_lease(Access& access, const upgrade::Options& options);

/// Ends the way of which `run` was a part: the cluster has reached its target by other means. Its record goes to the
/// history. Under the lock of the record. Errors: unhealthy "not-verified" where the cluster does not serve as it
/// should.
void end_way(Access& access, const upgrade::Run& run, const kubernetes::Observation& seen);
/// Goes on with what follows `run`, a complete one: the way is found again from what runs now. The exit code of the
/// verb.
[[nodiscard]] Exit go_on_to_target(Access& access, const upgrade::Run& run);
/// Records and walks the runs of `hops`, one after the other, the first one by `runner`, that of kubernetes_runner for
/// its lineage. The exit code of the verb.
[[nodiscard]] Exit walk_hops(Access& access, const drive::KubernetesRequest& request,
                             const kubernetes::Observation& seen, const std::vector<drive::Hop>& hops,
                             std::unique_ptr<cluster::NodeRunner> runner);

/// A run of kubernetes_craft.
[[nodiscard]] bool is_kubernetes_run(const upgrade::Run& run);

Exit run_scan(const cli::Args& args, cli::Context& context);
Exit run_guard(const cli::Args& args, cli::Context& context);
Exit run_unfreeze(const cli::Args& args, cli::Context& context);
Exit run_start_kubernetes(const cli::Args& args, cli::Context& context);

}  // namespace kmm::tool_upgrade
