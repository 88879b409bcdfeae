// SPDX-License-Identifier: Apache-2.0
// What can be found out about a node before its label is changed, when KMM's operator does the work and no worker is
// asked.
#pragma once

#include <string>

#include "api/types.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/module_nodes/operator_view.hpp"

namespace kmm::drive {

/// Errors, all checks_failed: those of resolve_entry and dead_labels (unless the labels are to be repaired),
/// "unversioned-loaded", the guards of plan/fleet/guard.hpp, and "cordon-unloads" when the node is to be drained and
/// the Module does not tolerate a cordon, for which KMM would unload it (facts: KMM 8.3).
void require_operable(const api::Objects& objects, const api::Module& module, const OperatorView& view,
                      const upgrade::Options& options, const std::string& to);

/// The record of a node that passed require_operable.
[[nodiscard]] upgrade::module::Node operator_record(const api::Module& module, const OperatorView& view);

/// The step the way to `to` begins with: "validate" if nothing is left to do, "unload" or "load".
[[nodiscard]] std::string first_operator_step(const OperatorView& view, const std::string& to);

/// For people, what a run would do on the node, one action a line.
[[nodiscard]] std::vector<std::string> operator_actions(const OperatorView& view, const std::string& to,
                                                        const upgrade::Options& options);

}  // namespace kmm::drive
