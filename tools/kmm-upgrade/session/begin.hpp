// SPDX-License-Identifier: Apache-2.0
// From a request to a recorded run that is walked: what start, apply, migrate and adopt have in common.
#pragma once

#include <memory>
#include <string>

#include "kmm-upgrade/session/rehearsal.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "upgrade/module_nodes/dry_run.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::tool_upgrade {

/// Whether `args`, of start module or of apply, ask for what `run` does.
[[nodiscard]] bool asks_for_module(const cli::Args& args, const upgrade::Run& run);
/// The Module that `request` names, as a target. Errors: faults of the cluster; those of drive::find_module.
[[nodiscard]] Target target_of(const cluster::Snapshot& snapshot, const drive::StartRequest& request);

/// Warnings of the reader, on standard error.
void tell_warnings(Call& call, const Diagnostics& diagnostics);
/// Prints on standard error which node checks `version` now. Thread safe; `call` must outlive it.
[[nodiscard]] drive::CheckObserver check_observer(Call& call, const std::string& version);

/// Prints the notes, looks at the Pods if nodes are to be drained, and sets what is known only now. Errors: those of
/// review_drain; "interrupted".
void finish_preparing(Access& access, drive::Prepared& prepared, const Share& share, const api::Module& module);

/// Tells which of the definitions "a,b" would be created.
void say_definitions(Rehearsal& rehearsal, const std::string& names);
/// Walks a run that does nothing, with a runner of its own over `runner`.
[[nodiscard]] drive::Ended dry_walk(Access& access, Rehearsal& rehearsal, const upgrade::Run& prepared,
                                    drive::DryStore& store, cluster::NodeRunner& runner);

/// How nodes get a module through `runner`, which outlives it. The kinds and DaemonSets that the run wants are made
/// when its actor is.
[[nodiscard]] std::unique_ptr<Hands> module_hands(Access& access, cluster::NodeRunner& runner);
/// launch of a run of this procedure. Errors: also data "cannot-edit" for files of the directory that cannot be edited.
[[nodiscard]] Launched launch_module(Access& access, upgrade::Run run, cluster::NodeRunner& runner);

/// Applies the Modules that are left after `run`, an ended one of `apply`. The exit code of the verb.
Exit go_on_applying(Access& access, const upgrade::Run& run);

}  // namespace kmm::tool_upgrade
