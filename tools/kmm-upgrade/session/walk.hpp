// SPDX-License-Identifier: Apache-2.0
// A run in the state directory with everything that walks it, and how a walk ends as an exit code.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kmm-upgrade/craft.hpp"
#include "kmm-upgrade/reach/reach.hpp"
#include "kmm-upgrade/session/progress.hpp"
#include "upgrade/drive/driver.hpp"

namespace kmm::tool_upgrade {

/// What a verb works with. Members in the order of their dependencies.
struct Access {
    Access(const cli::Args& args, cli::Context& context)
        : call(args, context), record(call), cluster(record), reach(cluster) {}
    Call call;
    RecordAccess record;
    ClusterAccess cluster;
    Reach reach;
};

/// Walks `run`, which is in the record. The cluster is open. Members in the order of their dependencies.
struct Walk {
    Walk(Access& access, const upgrade::Run& run, std::unique_ptr<Hands> hands);
    /// Runs `body` and removes the live table. If it ends because the Lease is lost, or the API server out of reach,
    /// that pause is recorded before the error goes on. After a run that has ended Hands::tell_after has its word.
    [[nodiscard]] drive::Ended carry_out(const std::function<drive::Ended()>& body);

    Access& access;
    std::unique_ptr<Hands> hands;
    drive::StateJournal journal;
    Progress progress;
    drive::Recorder recorder;
    std::unique_ptr<drive::Actor> actor;
    drive::Driver driver;
};

/// The recorded run under the lock, its cluster, and the walk of it.
struct RecordedWalk {
    /// Errors: those of RecordAccess::must_load, ClusterAccess, Craft::revise and Craft::take_up.
    RecordedWalk(Access& access, const std::string& operation, Extent extent = Extent::onward);
    upgrade::Run found;  ///< as it was when the verb began, but for what that changes
    bool is_revised;     ///< the verb has changed its subject: Revision::subject
    cluster::Cluster& opened;
    Walk walk;
};

/// Records where the cluster of `run` is.
void put_place(upgrade::Run& run, const cluster::Place& place);

struct Launched {
    drive::Ended ended = drive::Ended::paused;
    upgrade::Run run;  ///< as it is then
};
/// Records `run` in place of an ended one, which goes into the history, and walks it. The lock is held, the cluster is
/// open. Errors: those of the record and of the store.
[[nodiscard]] Launched launch(Access& access, upgrade::Run run, std::unique_ptr<Hands> hands);

/// Writes --metrics and prints the summary of the run. As Call::print_beside.
[[nodiscard]] Exit tell_result(Call& call, const upgrade::Run& run, Exit exit, bool interrupted = false);
/// tell_result, with the exit code that how the walk ended maps to.
[[nodiscard]] Exit finish(Call& call, drive::Ended ended, const upgrade::Run& run);
/// As finish, for a run after which this process goes on with another one: where the result is one document, it is that
/// of the last run.
[[nodiscard]] Exit finish_one(Call& call, drive::Ended ended, const upgrade::Run& run);
/// Goes on with what follows, after finish_one. If that throws, --metrics say that the recorded run waits for a person.
void go_on_after(Access& access, const std::function<void()>& next);

}  // namespace kmm::tool_upgrade
