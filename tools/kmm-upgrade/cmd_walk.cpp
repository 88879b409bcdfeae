// SPDX-License-Identifier: Apache-2.0
// The verbs that go on with a recorded run.
#include <functional>

#include <fmt/format.h>

#include "kmm-upgrade/launch.hpp"
#include "kmm-upgrade/session.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kmm-upgrade/view.hpp"

namespace kmm::tool_upgrade {
namespace {

/// A run that has ended needs neither lock nor cluster: it is shown, and ends as it did. Only what a process left there that was killed at the very end is
/// taken away.
std::optional<Exit> already_ended(Session& session) {
    const auto run = session.must_load();
    if (!upgrade::is_final_run_state(run.state)) return std::nullopt;
    session.free_ended_lease(run);
    return session.finish(run.state == "upgrade-complete" ? drive::Ended::complete : drive::Ended::aborted, run);
}

[[noreturn]] void refuse_ended(const upgrade::Run& run, const std::string& verb) {
    throw Error(Exit::paused, "run-ended", fmt::format("the upgrade is in state {}, {} is not possible", run.state, verb))
        .hint(upgrade::next_commands(run).front());
}

/// Tells of malformed documents before anything is recorded. A rollback goes on as far as it can.
void require_readable(Walk& walk) {
    if (walk.found.rollback) return;
    auto faults = walk.store->read().diagnostics;
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
}

void require_running(Session& session, const std::string& verb) {
    const auto run = session.must_load();
    if (upgrade::is_final_run_state(run.state)) refuse_ended(run, verb);
}

/// Goes on with the Modules of an apply that follow `run`, which ended with `before`.
Exit follow(Session& session, const upgrade::Run& run, Exit before) {
    const auto exit = go_on_applying(session, run);
    return exit == Exit::ok ? before : exit;
}

/// Walks the recorded run as far as it goes after what `begin` records, and of an apply the Modules that follow.
Exit walk_on(Session& session, const std::string& operation, const std::function<void(Walk&)>& begin) {
    auto ended = drive::Ended::paused;
    upgrade::Run run;
    {
        Walk walk(session, operation);
        require_readable(walk);
        begin(walk);
        ended = recording_loss(walk.driver, walk.recorder, [&] { return walk.driver.walk(); });
        ended = walk.progress.stop(ended);
        run = walk.recorder.run();
        if (ended == drive::Ended::complete) tell_newcomers(session, run, *walk.store);
    }
    if (!run.is_to_be_followed()) return session.finish(ended, run);
    return follow(session, run, session.finish_one(ended, run));
}

}  // namespace

Exit run_resume(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    const auto before = session.must_load();
    if (before.is_to_be_followed()) {
        session.free_ended_lease(before);
        return follow(session, before, before.is_partial() ? Exit::partial : Exit::ok);
    }
    if (const auto exit = already_ended(session)) return *exit;
    return walk_on(session, "resume", [](Walk& walk) { walk.driver.resume(); });
}

Exit run_step(const cli::Args& args, cli::Context& context) {
    // Else an empty variable of a script would mean any node.
    if (args.get("node") == "")
        throw Error(Exit::usage, "bad-value", "--node is empty, expected a node of the upgrade").hint("leave the option out for the next step");
    Session session(args, context);
    require_running(session, "step");
    Walk walk(session, "step");
    require_readable(walk);
    const auto ended = walk.progress.stop(
        recording_loss(walk.driver, walk.recorder, [&] { return walk.driver.step(args.get("node").value_or("")); }));
    if (ended == drive::Ended::complete) tell_newcomers(session, walk.recorder.run(), *walk.store);
    const auto exit = session.finish(ended, walk.recorder.run());
    // A step that was asked for and done is no stop by a failure.
    return ended == drive::Ended::paused && walk.recorder.state().pause_reason == "manual" ? Exit::ok : exit;
}

Exit run_abort(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    const auto policy = upgrade::parse_rollback(args.get("rollback").value_or("none"));
    if (!policy) throw Error(Exit::usage, "bad-value", "--rollback takes none, current or all").hint("leave the option out for none");
    const auto before = session.must_load();
    if (before.state == "upgrade-complete") refuse_ended(before, "abort");
    // Asking twice for the same is no fault; a rollback that the ended abort has not done is not done now either.
    if (upgrade::is_final_run_state(before.state) && !upgrade::rollback_nodes(before, *policy).empty()) {
        throw Error(Exit::paused, "run-ended",
                    fmt::format("the upgrade is in state {}, abort --rollback {} is not possible", before.state,
                                upgrade::to_string(*policy)))
            .hint(fmt::format("kmm-upgrade delete, then kmm-upgrade start module {} --to VERSION with the Module at the version wanted",
                              before.module()));
    }
    if (const auto exit = already_ended(session)) return *exit;
    Walk walk(session, "abort", Reach::nodes);
    if (walk.found.state == "upgrade-aborting" && walk.found.rollback && walk.found.rollback != policy)
        walk.progress.note(fmt::format("note: the abort that is under way goes on with --rollback {}",
                                       upgrade::to_string(*walk.found.rollback)));
    const auto ended = walk.progress.stop(recording_loss(walk.driver, walk.recorder, [&] { return walk.driver.abort(*policy); }));
    return session.finish(ended, walk.recorder.run());
}

Exit run_retry(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    require_running(session, "retry");
    const auto node = args.positional("NODE");
    return walk_on(session, "retry " + node, [&](Walk& walk) { walk.driver.retry(node); });
}

Exit run_skip(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    require_running(session, "skip");
    const auto reason = args.get("reason");
    if (!reason || reason->empty())
        throw Error(Exit::usage, "missing-option", "--reason TEXT is missing").hint("say why; it stays in the history");
    // A drained node's cordon is lifted; else nothing but the record changes.
    const auto reach = session.must_load().options.drain ? Reach::nodes : Reach::record;
    Walk walk(session, "skip " + args.positional("NODE"), reach);
    walk.driver.skip(args.positional("NODE"), *reason);
    walk.progress.stop();
    print_summary(context, walk.recorder.run(), false);
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
