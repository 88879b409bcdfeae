// SPDX-License-Identifier: Apache-2.0
// A run in the state directory with everything that walks it, and how a walk ends as an exit code.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "drive/driver.hpp"
#include "kmm-upgrade/progress.hpp"
#include "kmm-upgrade/reach.hpp"

namespace kmm::tool_upgrade {

/// What a verb works with. Members in the order of their dependencies.
struct Access {
    Access(const cli::Args& args, cli::Context& context) : call(args, context), record(call), cluster(record), reach(cluster) {}
    Call call;
    RecordAccess record;
    ClusterAccess cluster;
    Reach reach;
};

/// Walks `run`, which is in the record. The cluster is open. Members in the order of their dependencies.
struct Walk {
    /// `runner` must outlive it. `plugins`: used instead of the cluster's store, or null.
    Walk(Access& access, const upgrade::Run& run, cluster::NodeRunner& runner, std::unique_ptr<cluster::PluginStore> plugins);
    /// Runs `body` and removes the live table. If it ends because the Lease is lost, or the API server out of reach, that pause is recorded
    /// before the error goes on. After a complete run nodes are noted that came too late for it.
    [[nodiscard]] drive::Ended carry_out(const std::function<drive::Ended()>& body);

    Access& access;
    std::unique_ptr<cluster::PluginStore> plugins;
    drive::StateJournal journal;
    Progress progress;
    drive::Recorder recorder;
    drive::Driver driver;
};

/// What a verb touches of a recorded run: the record alone; nodes, which on an API server needs rights and the Lease; `onward` brings nodes
/// further, and needs the rights to drain them, too.
enum class Extent { record, nodes, onward };

/// The recorded run under the lock, its cluster, its runner and the walk of it.
struct RecordedWalk {
    /// Errors: those of RecordAccess::must_load, ClusterAccess and Reach; config "other-cluster".
    RecordedWalk(Access& access, const std::string& operation, Extent extent = Extent::onward);
    upgrade::Run found;  ///< as it was when the verb began
    cluster::Cluster& opened;
    std::unique_ptr<cluster::NodeRunner> runner;
    Walk walk;
};

/// Prints the summary of the run and maps how the walk ended to the exit code.
[[nodiscard]] Exit finish(Call& call, drive::Ended ended, const upgrade::Run& run);
/// As finish, for a run after which another one follows: where the result is one document, it is that of the last run.
[[nodiscard]] Exit finish_one(Call& call, drive::Ended ended, const upgrade::Run& run);

}  // namespace kmm::tool_upgrade
