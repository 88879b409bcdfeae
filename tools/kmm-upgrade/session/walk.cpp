// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/walk.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "kmm-upgrade/craft.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "record/space.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Loads under the lock: what is read is what will be changed.
upgrade::Run locked_run(RecordAccess& record, const std::string& operation) {
    record.directory().open(false);
    record.lock(operation);
    auto run = record.must_load();
    require_trust(record, run);
    return run;
}

/// Runs `body`. If it ends because the Lease is lost, or the API server out of reach, that pause is recorded before the
/// error goes on.
drive::Ended recording_loss(drive::Driver& driver, const drive::Recorder& recorder,
                            const std::function<drive::Ended()>& body) {
    try {
        return body();
    } catch (const Error& error) {
        if (!cluster::ends_run(error) || error.code() == "interrupted") throw;
        // No node has failed: what is under way is looked at by whoever resumes.
        if (!recorder.state().paused) driver.pause(error.code(), error.message());
        if (!cluster::is_server_trouble(error)) throw;
        throw Error(error).detail("then", "kmm-upgrade resume");
    }
}

Exit exit_of(const Call& call, drive::Ended ended, const upgrade::Run& run) {
    switch (ended) {
        case drive::Ended::complete: return run.is_partial() ? Exit::partial : Exit::ok;
        case drive::Ended::aborted: return Exit::ok;
        case drive::Ended::paused: return upgrade::is_through(run) ? Exit::partial : Exit::paused;
        case drive::Ended::interrupted: break;
    }
    return call.stop_exit();
}

}  // namespace

Walk::Walk(Access& in, const upgrade::Run& run, std::unique_ptr<Hands> taken)
    : access(in),
      hands(std::move(taken)),
      journal(in.record.directory()),
      progress(in.call.context(), run),
      recorder(run, journal, in.call.clock(),
               told_to_command(progress, run.options.on_event, [&in] { return in.call.stopped(); })),
      actor(hands->actor(recorder)),
      driver(*actor, recorder, in.call.clock(), [&in] { return in.call.stopped(); }) {
    driver.set_pace(pace_of(progress));
}

drive::Ended Walk::carry_out(const std::function<drive::Ended()>& body) {
    const auto ended = progress.stop(recording_loss(driver, recorder, body));
    if (ended == drive::Ended::complete || ended == drive::Ended::aborted) hands->tell_after(recorder.run());
    return ended;
}

RecordedWalk::RecordedWalk(Access& access, const std::string& operation, Extent extent)
    : found(locked_run(access.record, operation)),
      is_revised(craft_of(access.call.context(), found).revise(access.call.args(), found)),
      opened(access.cluster.open(access.cluster.place(&found))),
      walk(access, found, craft_of(access.call.context(), found).take_up(access, found, extent)) {}

void put_place(upgrade::Run& run, const cluster::Place& place) {
    run.cluster_place = place.text();
    run.cluster_context = place.context;
}

Launched launch(Access& access, upgrade::Run run, std::unique_ptr<Hands> hands) {
    auto& call = access.call;
    auto& record = access.record;
    run.cluster_identity = access.cluster.opened().store->identity(true);
    // Not archived first: a run that others are to follow says so until the next one does.
    const auto old = record.load();
    record::with_space_explained(record.directory().path(), "the same command again", [&] {
        if (old) record.directory().succeed(upgrade::describe(*old).slug(), upgrade::encode(run));
        else record.directory().begin(upgrade::encode(run));
    });
    note_unsealed(record);
    const auto words = upgrade::describe(run);
    const auto begun = fmt::format("{} {}{}: {} on {}", clock_text(run.created), run.state,
                                   words.is_one_of_many ? " " + words.subject() : "", words.versions(),
                                   base::counted(run.nodes.size(), words.member));
    if (call.context().verbosity >= 0) call.context().console.err(base::escape(begun) + "\n");
    Walk walk(access, upgrade::replay({{run.created, upgrade::encode(run)}}, procedures_of(call.context())),
              std::move(hands));
    walk.recorder.save();
    const auto ended = walk.carry_out([&] {
        if (!run.options.manual) return walk.driver.walk();
        walk.driver.pause("manual", "as --manual asks; go on with step");
        return drive::Ended::paused;
    });
    return {ended, walk.recorder.run()};
}

Exit tell_result(Call& call, const upgrade::Run& run, Exit exit, bool interrupted) {
    return call.print_beside([&] { write_metrics(call.args(), call.context(), run); },
                             [&] {
                                 print_summary(call.args(), call.context(), run, interrupted);
                                 return exit;
                             });
}

Exit finish(Call& call, drive::Ended ended, const upgrade::Run& run) {
    return tell_result(call, run, exit_of(call, ended, run), ended == drive::Ended::interrupted);
}

void go_on_after(Access& access, const std::function<void()>& next) {
    try {
        next();
    } catch (...) {
        try {
            write_metrics(access.call.args(), access.call.context(), access.record.load());
        } catch (const Error&) {
            // The first error is the one to be told.
        }
        throw;
    }
}

Exit finish_one(Call& call, drive::Ended ended, const upgrade::Run& run) {
    const auto print = [&] {
        const auto& output = call.context().output;
        if (output != "json" && output != "yaml") print_summary(call.args(), call.context(), run, false);
        return Exit::ok;
    };
    // Whether the metrics of the last run can be written is what counts.
    static_cast<void>(call.print_beside([&] { write_metrics(call.args(), call.context(), run, true); }, print));
    return exit_of(call, ended, run);
}

}  // namespace kmm::tool_upgrade
