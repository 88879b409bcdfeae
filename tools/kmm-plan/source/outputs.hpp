// SPDX-License-Identifier: Apache-2.0
// Files that a verb writes must not be files that it reads.
#pragma once

#include <set>
#include <string>

#include "cli/app.hpp"

namespace kmm::tool_plan {

/// Compares the files of --report and --metrics with `inputs` (files and directories), those that other options and
/// arguments name, and the manifests and parts of charts in the directories, by what the names lead to. Errors: usage
/// "out-in-input" for one that would be replaced; "bad-value" for --report.
void require_outputs_apart(const cli::Args& args, const std::set<std::string>& inputs);

}  // namespace kmm::tool_plan
