// SPDX-License-Identifier: Apache-2.0
// Nodes whose module something else has loaded: which of them have the right build already, so that nothing need be
// unloaded there.
#pragma once

#include <string>
#include <vector>

#include "cluster/seam/store.hpp"
#include "sys/clock.hpp"
#include "upgrade/module_nodes/worker.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::drive {

/// `right`: the live module is the build that the Module says, and no NodeModulesConfig tells of it: it can be recorded
/// as it is. `managed`: one does. `other`: another build is live, it cannot be told, or version labels ask for an
/// unload. `absent`: nothing is live. `unknown`: the node could not be asked, or has no image.
enum class Holding { right, managed, other, absent, unknown };

struct HeldNode {
    std::string name;
    Holding holding = Holding::unknown;
    std::string message;  ///< for people
};

/// Asks every node that `request` chooses for what is live, and has it check the Module's image. Changes nothing. In
/// walk order; nodes that are left out for their taints come last, as `unknown`. Errors: those of choosing Module and
/// nodes as prepare; checks_failed "no-module-loader"; what is no node's fault (cluster::ends_run) as it is.
[[nodiscard]] std::vector<HeldNode> survey_held(const cluster::Snapshot& snapshot, Worker& worker, sys::Clock& clock,
                                                const StartRequest& request, const CheckObserver& observer);

}  // namespace kmm::drive
