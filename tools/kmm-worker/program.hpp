// SPDX-License-Identifier: Apache-2.0
// The command tree of kmm-worker.
#pragma once

#include "cli/app.hpp"

namespace kmm::tool_worker {

/// All verbs of kmm-worker. Built on each call.
[[nodiscard]] cli::Program program();

}  // namespace kmm::tool_worker
