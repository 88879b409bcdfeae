// SPDX-License-Identifier: Apache-2.0
// The verb of kernel updates.
#pragma once

#include <memory>

#include "cli/app.hpp"
#include "cluster/seam/runner.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

[[nodiscard]] cli::Verb start_kernel_verb();
Exit run_start_kernel(const cli::Args& args, cli::Context& context);

/// --via over what `options` have. Errors: usage "bad-value" for a way that does not survive the reboot of a node;
/// those of Reach::choose.
void choose_kernel_reach(Access& access, upgrade::Options& options, const cluster::Place& place);
/// How the nodes of a run of that lineage are worked on. `to_change`: takes the Lease on an API server, or the lock of
/// the directory.
[[nodiscard]] std::unique_ptr<Hands> kernel_hands(Access& access, const upgrade::Options& options,
                                                  const std::string& lineage, bool to_change);

}  // namespace kmm::tool_upgrade
