// SPDX-License-Identifier: Apache-2.0
// The command tree of kmm-upgrade.
#pragma once

#include "kmm-upgrade/craft.hpp"

namespace kmm::tool_upgrade {

/// All verbs of kmm-upgrade that runs `crafts`, which outlive it. Built on each call.
[[nodiscard]] cli::Program program(const Crafts& crafts);

}  // namespace kmm::tool_upgrade
