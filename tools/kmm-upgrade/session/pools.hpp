// SPDX-License-Identifier: Apache-2.0
// MachineConfigPools that verbs respect, and pause with --pause-pools.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/reach/cluster_access.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

struct Access;

[[nodiscard]] cli::Option pause_pools_option();

/// With --pause-pools, the pools of the nodes that `is_chosen` (a Node as the API server has it) takes, but for those
/// that are paused. Notes tell of paused ones, and warn of the age of the kubelets' signer certificate. None in a
/// directory cluster and where there are no pools. Errors: usage "bad-value" for --pause-pools without any pool of the
/// nodes; those of the API server.
[[nodiscard]] std::vector<std::string> pools_to_pause(Access& access,
                                                      const std::function<bool(const value::Node&)>& is_chosen);

/// Takes nodes of paused pools out of `run`, but for those that are `named`: node and pool, by name of the node.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> leave_paused_out(Access& access, upgrade::Run& run,
                                                                                const std::vector<std::string>& named);

}  // namespace kmm::tool_upgrade
