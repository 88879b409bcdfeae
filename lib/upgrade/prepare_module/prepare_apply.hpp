// SPDX-License-Identifier: Apache-2.0
// Everything `apply` finds out about one Module before anything of it is changed or recorded.
#pragma once

#include <string>
#include <vector>

#include "plan/fleet/apply.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::drive {

/// Asks every node that `request` chooses and that a Module of `works` is for, by selector or by an entry, for its
/// kernel and boot, and puts them into `objects`: for clusters in which nobody else keeps the Nodes up to date. Changes
/// nothing else. Returns notes about nodes that cannot be asked; what their Nodes say counts.
[[nodiscard]] std::vector<std::string> ask_nodes(api::Objects& objects, Worker& worker, sys::Clock& clock,
                                                 const StartRequest& request, const std::vector<plan::ApplyWork>& works,
                                                 const CheckObserver& observer);

/// Leaves the nodes of `work` that `request.nodes` and `request.selector` choose; those that run no Linux are kept out.
/// Errors: not_found "node-not-found"
/// for a name that no Node has.
[[nodiscard]] plan::ApplyWork narrow(plan::ApplyWork work, const api::Objects& objects, const StartRequest& request);

/// The name by which the kernel knows the module of `work`, which has some: the Module's, else that of what is on its
/// nodes.
[[nodiscard]] std::string kernel_module_of(const api::Objects& objects, const plan::ApplyWork& work);

/// As `prepare`, for the nodes of `work`, which has some: nodes that get the module are asked and check its image,
/// those that lose it are asked what is live. Changes nothing. `request` gives all but Module and version. Errors:
/// checks_failed "nodes-not-ready" with one detail per reason; data with the faults of annotations that cannot be read.
[[nodiscard]] Prepared prepare_apply(const cluster::Snapshot& snapshot, Worker& worker, sys::Clock& clock,
                                     StartRequest request, const plan::ApplyWork& work, const CheckObserver& observer);

/// Nodes of `request`'s choice that the Module of `work` selects and that are left as they are: those that have nothing
/// of it and whose taints it does not tolerate, and those that are blocked. Of a Module with versions only the latter:
/// apply loads nothing of it.
[[nodiscard]] std::vector<upgrade::LeftOut> left_out_of(const api::Objects& objects, const StartRequest& request,
                                                        const plan::ApplyWork& work);

/// Takes the taint of a cordon off nodes that a kmm-upgrade has cordoned: a drain that was cut off is no reason to
/// unload anything.
void overlook_own_cordons(api::Objects& objects);

}  // namespace kmm::drive
