// SPDX-License-Identifier: Apache-2.0
// Tables as StarlingX's `system` command prints them.
#pragma once

#include <string>
#include <vector>

#include "kubernetes/versions/observe.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

/// A frame as prettytable draws it.
[[nodiscard]] std::string framed(const std::vector<std::string>& headers,
                                 const std::vector<std::vector<std::string>>& rows);
/// As `system kube-upgrade-show`. Any failed state is upgrade-failed, and the one before it is failed_step.
[[nodiscard]] std::string framed_upgrade(const upgrade::Run& run);
/// As `system kube-host-upgrade-list`, of what was last seen.
[[nodiscard]] std::string framed_hosts(const upgrade::Run& run);
/// The same while no upgrade is on record, of what runs.
[[nodiscard]] std::string framed_hosts(const kubernetes::Observation& seen);

}  // namespace kmm::tool_upgrade
