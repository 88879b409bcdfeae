// SPDX-License-Identifier: Apache-2.0
// The command tree of kmm-upgrade.
#pragma once

#include "cli/app.hpp"

namespace kmm::tool_upgrade {

/// All verbs of kmm-upgrade. Built on each call.
[[nodiscard]] cli::Program program();

}  // namespace kmm::tool_upgrade
