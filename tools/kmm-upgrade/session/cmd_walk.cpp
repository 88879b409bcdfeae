// SPDX-License-Identifier: Apache-2.0
// The verbs that go on with a recorded run.
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "cli/parse.hpp"
#include "kmm-upgrade/craft.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

/// A run that has ended needs neither lock nor cluster: it is shown, and ends as it did. Only what a process left there
/// that was killed at the very end is taken away.
std::optional<Exit> already_ended(Access& access) {
    const auto run = access.record.must_load();
    if (!upgrade::is_final_run_state(run.state)) return std::nullopt;
    if (seal_fault(access.record).empty()) {
        access.cluster.free_ended_lease(run);
        craft_of(access.call.context(), run).clean_up(access, run);
    }
    return finish(access.call, run.state == "upgrade-complete" ? drive::Ended::complete : drive::Ended::aborted, run);
}

[[noreturn]] void refuse_ended(const upgrade::Run& run, const std::string& verb) {
    throw Error(Exit::paused, "run-ended",
                fmt::format("the upgrade is in state {}, {} is not possible", run.state, verb))
        .hint(upgrade::next_commands(run).front());
}

/// Tells of malformed documents before anything is recorded. A rollback goes on as far as it can.
void require_readable(RecordedWalk& recorded) {
    if (!recorded.found.rollback) recorded.walk.hands->require_readable();
}

/// Data that is half restored is whole before anything else is done.
void require_no_restore(const cli::Context& context, const upgrade::Run& run, const std::string& verb) {
    if (!craft_of(context, run).is_restoring(run)) return;
    throw Error(Exit::paused, "restore-under-way",
                fmt::format("the data of etcd is being restored, {} is not possible", verb))
        .hint("kmm-upgrade resume goes on with it");
}

upgrade::Run require_running(RecordAccess& record, const std::string& verb) {
    auto run = record.must_load();
    if (upgrade::is_final_run_state(run.state)) refuse_ended(run, verb);
    require_no_restore(record.call().context(), run, verb);
    return run;
}

/// Goes on with what follows `run`, which ended with `before`.
Exit follow(Access& access, const upgrade::Run& run, Exit before) {
    auto exit = Exit::ok;
    go_on_after(access, [&] { exit = craft_of(access.call.context(), run).follow(access, run); });
    return exit == Exit::ok ? before : exit;
}

/// Walks the recorded run as far as it goes after what `begin` records, and what follows it. `until`: of the command
/// line.
Exit walk_on(Access& access, const std::string& operation, const std::optional<std::string>& until,
             const std::function<void(drive::Driver&, const drive::Revision&)>& begin) {
    auto ended = drive::Ended::paused;
    upgrade::Run run;
    {
        RecordedWalk recorded(access, operation);
        require_readable(recorded);
        auto& walk = recorded.walk;
        begin(walk.driver, {until, recorded.is_revised ? recorded.found.subject : value::Node()});
        ended = walk.carry_out([&] { return walk.driver.walk(); });
        run = walk.recorder.run();
    }
    if (!upgrade::is_followed(run)) return finish(access.call, ended, run);
    return follow(access, run, finish_one(access.call, ended, run));
}

/// Ends the run, and brings nodes back as `policy` says.
Exit walk_back(Access& access, upgrade::Rollback policy) {
    RecordedWalk recorded(access, "abort", Extent::nodes);
    auto& walk = recorded.walk;
    const auto& found = recorded.found;
    if (found.state == "upgrade-aborting" && found.rollback && found.rollback != policy)
        walk.progress.note(fmt::format("note: the abort that is under way goes on with --rollback {}",
                                       upgrade::to_string(*found.rollback)));
    const auto ended = walk.carry_out([&] { return walk.driver.abort(policy); });
    return finish(access.call, ended, walk.recorder.run());
}

}  // namespace

Exit run_resume(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    auto before = access.record.must_load();
    if (upgrade::is_followed(before)) {
        if (const auto until = until_option(args, before)) before.until = *until;
        // What follows is made of the record.
        require_trust(access.record, before);
        static_cast<void>(craft_of(context, before).revise(args, before));
        access.cluster.free_ended_lease(before);
        return follow(access, before, before.is_partial() ? Exit::partial : Exit::ok);
    }
    if (const auto exit = already_ended(access)) return *exit;
    const auto until = until_option(args, before);
    if (craft_of(context, before).is_restoring(before)) {
        craft_of(context, before).restore_data(access);
        return walk_back(access, upgrade::Rollback::all);
    }
    return walk_on(access, "resume", until,
                   [](drive::Driver& driver, const drive::Revision& revision) { driver.resume(revision); });
}

Exit run_step(const cli::Args& args, cli::Context& context) {
    // Else an empty variable of a script would mean any node.
    if (args.get("node") == "")
        throw Error(Exit::usage, "bad-value", "--node is empty, expected a node of the upgrade")
            .hint("leave the option out for the next step");
    if (!args.positional("NODE|STAGE").empty() && args.get("node"))
        throw Error(Exit::usage, "bad-value", "step takes a stage or --node, not both")
            .hint("leave --node out for the whole stage");
    Access access(args, context);
    static_cast<void>(require_running(access.record, "step"));
    RecordedWalk recorded(access, "step");
    require_readable(recorded);
    auto& walk = recorded.walk;
    const auto& table = upgrade::procedure_of(walk.recorder.header()).table();
    auto stage = cli::bare_name("NODE", args.positional("NODE|STAGE"));
    auto node = args.get("node").value_or("");
    if (table.find_stage(stage) == nullptr) {
        if (const auto* of_state = table.stage_of(stage)) stage = of_state->name;
        else if (walk.recorder.run().find(stage) != nullptr) node = std::exchange(stage, "");
    }
    const auto ended =
        walk.carry_out([&] { return stage.empty() ? walk.driver.step(node) : walk.driver.step_stage(stage); });
    // A step that was asked for and done is no stop by a failure.
    const auto at = walk.recorder.state();
    const auto* wanted = table.find_stage(stage);
    const bool is_done = at.pause_reason == "manual" || at.pause_reason == upgrade::k_pause_until ||
                         (wanted != nullptr && at.state == wanted->done);
    if (ended == drive::Ended::paused && is_done)
        return tell_result(access.call, walk.recorder.run(), Exit::ok);
    return finish(access.call, ended, walk.recorder.run());
}

Exit run_abort(const cli::Args& args, cli::Context& context) {
    const auto policy = upgrade::parse_rollback(args.get("rollback").value_or("none"));
    if (!policy)
        throw Error(Exit::usage, "bad-value", "--rollback takes none, current or all")
            .hint("leave the option out for none");
    const bool restores = args.flag("restore-etcd");
    if (restores && policy != upgrade::Rollback::all)
        throw Error(Exit::usage, "bad-value", "--restore-etcd requires --rollback all")
            .hint("all members of etcd go back to one snapshot, and every node with them");
    Access access(args, context);
    const auto before = access.record.must_load();
    if (before.state == "upgrade-complete") refuse_ended(before, "abort");
    // Asking twice for the same is no fault; a rollback that the ended abort has not done is not done now either.
    if (upgrade::is_final_run_state(before.state) && !upgrade::rollback_nodes(before, *policy).empty()) {
        throw Error(Exit::paused, "run-ended",
                    fmt::format("the upgrade is in state {}, abort --rollback {} is not possible", before.state,
                                upgrade::to_string(*policy)))
            .hint(fmt::format("kmm-upgrade delete, then {}", upgrade::describe(before).elsewhere));
    }
    if (const auto exit = already_ended(access)) return *exit;
    if (policy != upgrade::Rollback::all) require_no_restore(context, before, "abort without --rollback all");
    const auto& craft = craft_of(context, before);
    if (restores || craft.is_restoring(before)) craft.restore_data(access);
    return walk_back(access, *policy);
}

Exit run_retry(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    const auto until = until_option(args, require_running(access.record, "retry"));
    const auto node = args.positional("NODE");
    return walk_on(access, node.empty() ? "retry" : "retry " + node, until,
                   [&](drive::Driver& driver, const drive::Revision& revision) { driver.retry(node, revision); });
}

Exit run_skip(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    static_cast<void>(require_running(access.record, "skip"));
    const auto reason = args.wanted("reason", "TEXT", "say why; it stays in the history");
    // A drained node's cordon is lifted; else nothing but the record changes.
    const auto extent = access.record.must_load().options.drain ? Extent::nodes : Extent::record;
    RecordedWalk recorded(access, "skip " + args.positional("NODE"), extent);
    auto& walk = recorded.walk;
    walk.driver.skip(args.positional("NODE"), reason);
    walk.progress.stop();
    return tell_result(access.call, walk.recorder.run(), Exit::ok);
}

}  // namespace kmm::tool_upgrade
