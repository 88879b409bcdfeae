// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/counted.hpp"
#include "digest/digest.hpp"
#include "kmm-upgrade/session/begin.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "plan/fleet/drift.hpp"
#include "plan/fleet/make_plan.hpp"
#include "sys/file_ops.hpp"
#include "sys/host.hpp"
#include "sys/trust.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/module_nodes/operator_check.hpp"
#include "value/reader.hpp"

namespace kmm::tool_upgrade {
namespace {

drive::StartRequest request_of(const cli::Args& args) {
    drive::StartRequest request;
    take_module(args, request);
    request.to_version = args.wanted("to", "VERSION", "name the version to upgrade to, as --to v2");
    take_walk_options(args, request);
    request.options.all_nodes = request.nodes.empty() && !args.get("selector");
    return request;
}

/// Refuses if the cluster would be planned otherwise today than in the plan file. Errors: checks_failed "plan-drifted"
/// with a detail a node; data "bad-plan"; the reader's own.
void require_as_planned(const std::string& file, const api::Objects& objects, const drive::StartRequest& request) {
    constexpr std::size_t k_told_max = 20;
    Diagnostics faults;
    constexpr std::size_t k_plan_bytes = 1U << 30U;
    const auto text =
        file == "-" ? sys::read_fd(0, "-", k_plan_bytes) : sys::read_trusted_file(file, "saved plan", k_plan_bytes);
    const auto documents = value::read_any(text, file, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    if (documents.size() != 1)
        throw Error(Exit::data, "bad-plan", fmt::format("expected one plan, found {} documents", documents.size()))
            .at({file});
    const auto& module = drive::find_module(objects, request.ns, request.name);
    const auto saved = plan::read_saved_plan(documents.front(), module.meta.namespace_, module.meta.name);
    plan::Options options;
    options.next = saved.next;
    const auto now = plan::make_plan(objects, plan::complete(options, objects));
    auto drifted = plan::drift(saved, now, module.meta.namespace_, module.meta.name);
    const auto is_planned = [&](const auto& each) { return saved.nodes.contains(each.first); };
    if (!request.nodes.empty())  // those that are neither asked for nor planned stay as they are
        std::erase_if(drifted, [&](const auto& each) {
            return !is_planned(each) &&
                   std::find(request.nodes.begin(), request.nodes.end(), each.first) == request.nodes.end();
        });
    const auto unplanned = drifted.size() - static_cast<std::size_t>(
                                                std::count_if(drifted.begin(), drifted.end(), is_planned));
    const std::string hint =
        unplanned > 0 && unplanned == drifted.size()
            ? "name the nodes of the plan with --node, or save a plan of all with kmm-plan show -o json"
            : "look at it with kmm-plan show, save the new plan with -o json, and start with that";
    if (drifted.empty() && !saved.loader_digest.empty() &&
        saved.loader_digest != "sha256:" + digest::sha256_hex(plan::loader_text(module)))
        throw Error(Exit::checks_failed, "plan-drifted",
                    fmt::format("the moduleLoader of Module {}/{} is another one than {} says; nothing was changed",
                                module.meta.namespace_, module.meta.name, file))
            .hint(hint);
    if (drifted.empty()) return;
    Error error(Exit::checks_failed, "plan-drifted",
                fmt::format("the cluster is not as {} says: {} of {} {}; nothing was changed", file, drifted.size(),
                            base::counted(saved.nodes.size() + unplanned, "node"),
                            drifted.size() == 1 ? "differs" : "differ"));
    for (std::size_t i = 0; i < std::min(drifted.size(), k_told_max); ++i)
        error.detail(drifted[i].first, drifted[i].second);
    if (drifted.size() > k_told_max) error.detail("more", base::counted(drifted.size() - k_told_max, "node"));
    throw std::move(error).hint(hint);
}

}  // namespace

Exit run_start_module(const cli::Args& args, cli::Context& context) {
    if (is_to_be_resumed(args, context, [&](const upgrade::Run& run) { return asks_for_module(args, run); }))
        return run_resume(args, context);
    Access access(args, context);
    auto& call = access.call;
    auto request = request_of(args);
    const auto share = max_unavailable(args);
    const bool dry = args.flag("dry-run");
    const auto place = access.cluster.place();
    access.reach.choose(request.options, place, Reach::Age::fresh);
    // The lock comes before the question what is recorded: who is at work matters more than in which state.
    if (!dry) access.record.open_locked("start module " + args.positional("MODULE"));
    require_free(access.record.load());
    auto& cluster = access.cluster.open(place);
    if (!dry) access.cluster.lock_directory();
    access.cluster.expect(request.options, request.ns);
    const auto definitions = access.cluster.kinds_to_create(request.options, ClusterAccess::Definitions::of_nodes);
    const auto snapshot = cluster.store->read();
    const auto target = target_of(snapshot, request);
    access.cluster.secure(request.options, target, dry ? ClusterAccess::Purpose::look : ClusterAccess::Purpose::change);
    const auto runner = access.reach.runner(request.options, target);
    drive::Worker worker(*runner);
    tell_warnings(call, snapshot.diagnostics);
    if (const auto file = args.get("plan")) require_as_planned(*file, snapshot.objects, request);
    auto prepared = drive::prepare(snapshot, worker, call.clock(), request, check_observer(call, request.to_version));
    auto& run = prepared.run;
    finish_preparing(access, prepared, share, drive::find_module(snapshot.objects, target.ns, target.module));
    access.reach.require_images(run);
    upgrade::module::set_created_definitions(run, definitions);
    Rehearsal rehearsal(context);
    const auto rehearsed = run.is_partial() ? Exit::partial : Exit::ok;
    if (dry) {
        const auto text = upgrade::describe(run);
        rehearsal.module(text.subject(), text.from, text.to, false);
        rehearsal.left_out(run.left_out);
    }
    if (dry && run.options.via == upgrade::Via::operator_) {
        for (const auto& node : run.nodes) {
            const auto view = drive::operator_view(snapshot.objects, node.name, target.ns, target.module);
            for (const auto& action : drive::operator_actions(view, run.to_version, run.options))
                rehearsal.action(node.name, action);
        }
        rehearsal.finish(true);
        return rehearsed;
    }
    if (dry) {
        say_definitions(rehearsal, definitions);
        drive::DryStore dry_store(*cluster.store, rehearsal.sink());
        const auto ended = dry_walk(access, rehearsal, run, dry_store, *runner);
        rehearsal.finish(ended == drive::Ended::complete);
        return ended == drive::Ended::complete ? rehearsed : Exit::checks_failed;
    }
    const auto launched = launch_module(access, std::move(run), *runner);
    return finish(call, launched.ended, launched.run);
}

}  // namespace kmm::tool_upgrade
