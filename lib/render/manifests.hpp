// SPDX-License-Identifier: Apache-2.0
// Manifests from decisions. Pure and byte-stable: same objects, same trees.
#pragma once

#include <string>
#include <vector>

#include "api/types.hpp"
#include "plan/plan.hpp"
#include "value/node.hpp"

namespace kmm::render {

/// The NodeModulesConfigs that the cluster settles at (spec and labels, no status), each followed by a Node of the same name
/// with the KMM labels it ends up with. Sorted by node; nodes without module and without NodeModulesConfig are left out.
/// Entries are sorted by namespace and name.
[[nodiscard]] std::vector<value::Node> node_modules_configs(const api::Objects& objects);

/// What worker Pods need beyond the plan.
struct WorkerOptions {
    std::string image;               ///< of kmm-worker
    std::string firmware_host_path;  ///< where the hosts look for firmware, "" if not set
};

/// The worker Pods that bring the nodes to what the plan says, in the order in which they have to run: per node and Module
/// an unload Pod, a load Pod, or (reload) both, which bear the same name, so that the second comes after the first has
/// gone. The worker pulls the kmod image itself: no init container, and images need no shell.
/// Errors: usage "firmware-host-path-missing" if a Module has firmwarePath and the options have no directory for it.
[[nodiscard]] std::vector<value::Node> worker_pods(const api::Objects& objects, const plan::Options& plan_options,
                                                   const WorkerOptions& options);

}  // namespace kmm::render
