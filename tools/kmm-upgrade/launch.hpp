// SPDX-License-Identifier: Apache-2.0
// From options to a recorded run that is walked: what start and apply have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cluster/runner.hpp"
#include "cluster/workloads.hpp"
#include "drive/dry_run.hpp"
#include "drive/prepare.hpp"
#include "kmm-upgrade/rehearsal.hpp"
#include "kmm-upgrade/session.hpp"

namespace kmm::tool_upgrade {

/// "N" or "P%"; a percentage is of the nodes of the run, rounded down, at least one. Kept as given: the number of nodes is not
/// known yet.
struct Share {
    std::int64_t number = 1;
    bool percent = false;
    [[nodiscard]] std::int64_t of(std::size_t nodes) const;
};

/// --max-unavailable, and its text. Errors: usage "bad-value".
[[nodiscard]] Share max_unavailable(const cli::Args& args);
[[nodiscard]] Share parse_share(std::string text);

/// MODULE as NAMESPACE/NAME, or NAME with or without --namespace; "" if it is not given. Errors: usage "bad-value".
void take_module(const cli::Args& args, drive::StartRequest& request);
/// What nodes are reached for, in a run of the Module that `request` names. Errors: faults of the cluster; those of
/// drive::find_module.
[[nodiscard]] Session::Errand errand_of(const cluster::Snapshot& snapshot, const drive::StartRequest& request);

/// Nodes, order, pace, drain and who asks, from the options that start and apply share; a new lineage. Errors: usage.
void take_walk_options(const cli::Args& args, drive::StartRequest& request);

/// The two parts of it that a continued apply needs as well: the names of an order file, and who asks, with which lineage.
void read_order(drive::StartRequest& request);
void sign_request(drive::StartRequest& request);

/// "Nothing to do" must not be the answer where -n or -l is misspelt. Errors: not_found "module-not-found", checks_failed "no-nodes".
void require_matches(const api::Objects& objects, const std::string& ns, const cluster::Selector& selector);

/// Refuses while another upgrade is recorded that has not ended. Errors: paused "run-exists".
void require_free(const std::optional<upgrade::Run>& run);

/// With --or-resume: whether the upgrade that is recorded is the one that `args` ask for, so that it is resumed instead of a new one being
/// started: of MODULE to the version --to, or, without --to, one that apply began, of one of MODULE... or of any. False where none is
/// recorded, it is complete, or it is another one. Errors: paused "run-ended" if it was aborted; those of Session::load.
[[nodiscard]] bool is_to_be_resumed(const cli::Args& args, cli::Context& context);

/// Warnings of the reader, on standard error.
void tell_warnings(Session& session, const Diagnostics& diagnostics);
/// Says on standard error which node checks `version` now. Thread safe; `session` must outlive it.
[[nodiscard]] drive::CheckObserver check_observer(Session& session, const std::string& version);

/// Tells the notes, looks at the Pods if nodes are to be drained, and sets what is known only now. Errors: those of review_drain;
/// "interrupted".
void finish_preparing(Session& session, drive::Prepared& prepared, const Share& share, const std::string& place,
                      cluster::Workloads& workloads, const api::Module& module);

/// Tells which of Run::created_definitions would be created.
void say_definitions(Rehearsal& rehearsal, const std::string& names);
/// Walks a run that does nothing, with a runner of its own over `runner`.
[[nodiscard]] drive::Ended dry_walk(Session& session, Rehearsal& rehearsal, const upgrade::Run& prepared, drive::DryStore& store,
                                    cluster::Workloads& workloads, cluster::NodeRunner& runner);

/// Tells of nodes that `run`, which has walked all nodes of its Module to the end, does not have because they came later. Reads the whole cluster.
void tell_newcomers(Session& session, const upgrade::Run& run, cluster::ClusterStore& store);

struct Launched {
    drive::Ended ended = drive::Ended::paused;
    upgrade::Run run;  ///< as it is then
};
/// Records `run` in place of an ended one, which goes into the history, and walks it. The lock is held. Errors: those of the record
/// and of the store.
[[nodiscard]] Launched launch(Session& session, upgrade::Run run, cluster::ClusterStore& store, cluster::Workloads& workloads,
                              cluster::NodeRunner& runner);

/// Applies the Modules that are left after `run`, an ended one of `apply`. The exit code of the verb.
Exit go_on_applying(Session& session, const upgrade::Run& run);

}  // namespace kmm::tool_upgrade
