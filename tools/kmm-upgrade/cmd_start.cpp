// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "drive/operator_check.hpp"
#include "kmm-upgrade/launch.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "plan/drift.hpp"
#include "sys/host.hpp"
#include "value/reader.hpp"

namespace kmm::tool_upgrade {
namespace {

drive::StartRequest request_of(const cli::Args& args) {
    drive::StartRequest request;
    take_module(args, request);
    const auto version = args.get("to");
    if (!version || version->empty())
        throw Error(Exit::usage, "missing-option", "--to VERSION is missing").hint("name the version to upgrade to, as --to v2");
    request.to_version = *version;
    take_walk_options(args, request);
    request.options.all_nodes = request.nodes.empty() && !args.get("selector");
    return request;
}

/// Refuses if the cluster would be planned otherwise today than in the plan file. Errors: checks_failed "plan-drifted" with
/// a detail a node; data "bad-plan"; the reader's own.
void require_as_planned(const std::string& file, const api::Objects& objects, const drive::StartRequest& request) {
    constexpr std::size_t k_told_max = 20;
    Diagnostics faults;
    const auto documents = value::read_any(sys::read_file(file, 1U << 30U), file, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    if (documents.size() != 1)
        throw Error(Exit::data, "bad-plan", fmt::format("expected one plan, found {} documents", documents.size())).at({file});
    const auto& module = drive::find_module(objects, request.ns, request.name);
    const auto saved = plan::read_saved_plan(documents.front(), module.meta.namespace_, module.meta.name);
    plan::Options options;
    options.next = saved.next;
    const auto now = plan::make_plan(objects, plan::complete(options, objects));
    const auto drifted = plan::drift(saved, now, module.meta.namespace_, module.meta.name);
    if (drifted.empty()) return;
    Error error(Exit::checks_failed, "plan-drifted",
                fmt::format("the cluster is no longer as {} says: {} of {} nodes differ; nothing was changed", file, drifted.size(),
                            saved.nodes.size()));
    for (std::size_t i = 0; i < std::min(drifted.size(), k_told_max); ++i) error.detail(drifted[i].first, drifted[i].second);
    if (drifted.size() > k_told_max) error.detail("more", fmt::format("{} nodes", drifted.size() - k_told_max));
    throw std::move(error).hint("look at it with kmm-plan show, save the new plan with -o json, and start with that");
}

}  // namespace

Exit run_start_module(const cli::Args& args, cli::Context& context) {
    if (is_to_be_resumed(args, context)) return run_resume(args, context);
    Session session(args, context);
    auto request = request_of(args);
    const auto share = max_unavailable(args);
    const bool dry = args.flag("dry-run");
    const auto place = session.cluster_place("");
    session.choose_runner(request.options, place, Session::Age::fresh);
    if (dry) {
        require_free(session.load());
    } else {
        // The lock comes before the question what is recorded: who is at work matters more than in which state.
        session.directory().open(true);
        session.lock("start module " + args.positional("MODULE"));
        require_free(session.load());
    }
    const auto store = session.open_cluster(place);
    if (!dry) session.lock_directory(*store, "start module " + args.positional("MODULE"));
    Session::limit_writes(request.options, *store);
    const auto workloads = Session::workloads_on(*store);
    Session::expect_drain(request.options, *workloads);
    Session::expect_work(request.options, *store, request.ns);
    const auto definitions = Session::kinds_to_create(request.options, *store, Session::Definitions::of_nodes);
    const auto snapshot = store->read();
    const auto errand = errand_of(snapshot, request);
    session.secure(request.options, *store, errand, dry ? Session::Purpose::look : Session::Purpose::change);
    const auto runner = session.make_runner(request.options, *store, errand);
    drive::Worker worker(*runner);
    tell_warnings(session, snapshot.diagnostics);
    if (const auto file = args.get("plan")) require_as_planned(*file, snapshot.objects, request);
    auto prepared = drive::prepare(snapshot, worker, session.clock(), request, check_observer(session, request.to_version));
    finish_preparing(session, prepared, share, place, *workloads, drive::find_module(snapshot.objects, errand.ns, errand.module));
    Session::require_images(prepared.run, *store);
    prepared.run.created_definitions = definitions;
    Rehearsal rehearsal(context);
    if (dry) rehearsal.module(prepared.run.module(), prepared.run.from_text(), prepared.run.to_text(), false);
    if (dry && prepared.run.options.runner == upgrade::k_runner_operator) {
        const auto& run = prepared.run;
        for (const auto& node : run.nodes) {
            const auto view = drive::operator_view(snapshot.objects, node.name, run.module_namespace, run.module_name);
            for (const auto& action : drive::operator_actions(view, run.to_version, run.options))
                rehearsal.action(node.name, action);
        }
        rehearsal.finish(true);
        return Exit::ok;
    }
    if (dry) {
        say_definitions(rehearsal, definitions);
        drive::DryStore dry_store(*store, rehearsal.sink());
        const auto ended = dry_walk(session, rehearsal, prepared.run, dry_store, *workloads, *runner);
        rehearsal.finish(ended == drive::Ended::complete);
        return ended == drive::Ended::complete ? Exit::ok : Exit::checks_failed;
    }
    const auto launched = launch(session, std::move(prepared.run), *store, *workloads, *runner);
    return session.finish(launched.ended, launched.run);
}

}  // namespace kmm::tool_upgrade
