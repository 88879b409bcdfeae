// SPDX-License-Identifier: Apache-2.0
// Loading and unloading as steps of their own, for the verbs that do more than one.
#pragma once

#include "cli/app.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"

namespace kmm::tool_worker {

/// Pulls, checks and loads what `job` says, under the node's lock. Errors: those of `load`.
[[nodiscard]] WorkerResult load_job(const Job& job, const cli::Args& args, cli::Context& context);
/// Unloads what `job` says, under the node's lock. Errors: those of `unload`.
[[nodiscard]] WorkerResult unload_job(const Job& job, const cli::Args& args);
/// --verify-after.
[[nodiscard]] cli::Option verify_option();
/// --wait, --policy and --restore-in-tree.
[[nodiscard]] std::vector<cli::Option> unload_options();

}  // namespace kmm::tool_worker
