// SPDX-License-Identifier: Apache-2.0
// The command tree of kmm-plan.
#pragma once

#include "cli/app.hpp"

namespace kmm::tool_plan {

/// All verbs of kmm-plan. Built on each call.
[[nodiscard]] cli::Program program();

}  // namespace kmm::tool_plan
