// SPDX-License-Identifier: Apache-2.0
// What an ordered upgrade of one Module would do, before anything is done.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/decide/verdict.hpp"

namespace kmm::plan {

/// One node of the upgrade, in the order of the walk.
struct UpgradeNode {
    std::string node, kernel;
    std::string current;             ///< version that is loaded, "-" if nothing is, "unversioned" if it has none
    std::string image;               ///< that would be loaded; "" if none is known
    std::vector<std::string> steps;  ///< of "check", "unload", "load", "validate"; empty if there is nothing to do
    std::string reason;              ///< why the node cannot be upgraded, a reason's code; "" if it can
    std::string message;
};

/// The nodes with Linux that the Module selects, sorted by name, as if each had its version label moved to the Module's
/// version and KMM's labels walked to their end. Nodes with a taint that is not tolerated are in it, with that reason,
/// and nodes on which an annotation forbids the steps (plan/fleet/guard.hpp). The Module must have a version. `options`
/// must be complete; Options::next does not count.
[[nodiscard]] std::vector<UpgradeNode> upgrade_nodes(const api::Objects& objects, const api::Module& module,
                                                     const Options& options);

/// The error for a selection in which none but `nodes` (not empty) could take part, as they run another system:
/// checks_failed "no-nodes". `is_named`: they were named one by one.
[[nodiscard]] Error no_linux_error(const std::vector<std::string>& nodes, bool is_named);

}  // namespace kmm::plan
