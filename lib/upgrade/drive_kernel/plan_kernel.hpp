// SPDX-License-Identifier: Apache-2.0
// From a cluster and a kernel release to the run that brings nodes there.
#pragma once

#include <string>
#include <vector>

#include "api/types.hpp"
#include "sys/clock.hpp"
#include "upgrade/kernel/subject.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::drive {

struct PlannedKernel {
    upgrade::Run run;                ///< without nodes that were left out
    std::vector<std::string> notes;  ///< for people: what the order does
};

/// The run of `request`, whose to_version is the release: nodes of its choice, in its order. Nodes that somebody else
/// has cordoned, or that are not Ready, are left out unless they are named. Nodes that run the release already are part
/// of it: their drivers are proved. Those without Linux have no part in it. Errors: not_found "node-not-found";
/// checks_failed "no-nodes", "order-incomplete".
[[nodiscard]] PlannedKernel plan_kernel(const api::Objects& objects, const StartRequest& request,
                                        const upgrade::kernel::Subject& subject, const sys::Clock& clock);

/// What is done on `node` of that run, for people, in order. `modules`: those that are loaded afterwards;
/// `recipe_drivers`: those that are waited for.
[[nodiscard]] std::vector<std::string> kernel_actions(const upgrade::Run& run, const upgrade::NodeRecord& node,
                                                      const std::vector<std::string>& modules,
                                                      const std::vector<std::string>& recipe_drivers);

/// Modules that survey says `node` needs, by NAMESPACE/NAME, those that others need first.
[[nodiscard]] std::vector<std::string> modules_on(const api::Objects& objects, const std::string& kernel,
                                                  const std::string& node);

/// Modules that KMM's operator would not load on a cordoned node, and nodes that wait for a version of a Module other
/// than the Module's own: both would leave a node without its driver. Control planes that too few others would serve
/// without. Findings with the codes "cordon-unloads", "version-mismatch" and "control-plane-unavailable".
[[nodiscard]] Diagnostics kernel_obstacles(const api::Objects& objects, const upgrade::Run& run);

}  // namespace kmm::drive
