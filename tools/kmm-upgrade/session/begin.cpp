// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/begin.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "upgrade/drive_module/drain.hpp"
#include "upgrade/drive_module/module_actor.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::tool_upgrade {

bool asks_for_module(const cli::Args& args, const upgrade::Run& run) {
    const auto& own = upgrade::module::procedures();
    if (std::find(own.begin(), own.end(), run.rules) == own.end()) return false;
    const auto version = args.get("to");
    if (upgrade::module::is_apply(run) ? version.has_value() : run.to_version != version.value_or("")) return false;
    const auto subject = upgrade::module::subject_of(run);
    const auto names = args.positionals("MODULE");
    const auto ns = args.get("namespace").value_or(subject.ns);
    if (ns != subject.ns) return false;
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
               return name == subject.full_name() || name == subject.name;
           });
}

Target target_of(const cluster::Snapshot& snapshot, const drive::StartRequest& request) {
    Target target{request.ns, request.name, "", request.lineage, {}};
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto& module = drive::find_module(snapshot.objects, request.ns, request.name);
    target.ns = module.meta.namespace_;
    if (request.options.via == upgrade::Via::self) target.rights = cluster::plugin_rules(module);
    if (module.module_loader) target.service_account = module.module_loader->service_account_name;
    return target;
}

void tell_warnings(Call& call, const Diagnostics& diagnostics) {
    auto& context = call.context();
    if (context.verbosity < 0) return;
    for (const auto& diagnostic : diagnostics)
        if (diagnostic.severity == Severity::warning)
            context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
}

drive::CheckObserver check_observer(Call& call, const std::string& version) {
    auto mutex = std::make_shared<std::mutex>();
    return [&call, version, mutex](const std::string& node, const std::string& what) {
        const std::lock_guard guard(*mutex);
        auto& context = call.context();
        if (what == "status" || context.verbosity < 0) return;
        context.console.err(fmt::format("{} {} {}\n", clock_text(base::format_rfc3339(call.clock().now_unix())), node,
                                        what == "check" ? "checks " + version : what));
    };
}

namespace {

/// What --canary and --pause-after will not do: both stop only where nodes follow.
std::vector<std::string> stops_that_never_come(const upgrade::Run& run) {
    const auto count = static_cast<std::int64_t>(run.nodes.size());
    const auto nodes = count == 1 ? std::string("1 node") : fmt::format("{} nodes", count);
    const auto* hint = count == 1 ? "--manual stops before each step" : "a smaller number stops before the others";
    std::vector<std::string> texts;
    for (const auto& [option, after] :
         {std::pair{"canary", run.options.canary}, std::pair{"pause-after", run.options.pause_after}})
        if (after >= count)
            texts.push_back(fmt::format("--{} {} does not stop this run: it has {}, so none follows; {}", option, after,
                                        nodes, hint));
    return texts;
}

}  // namespace

void finish_preparing(Access& access, drive::Prepared& prepared, const Share& share, const api::Module& module) {
    auto& call = access.call;
    const auto& cluster = access.cluster.opened();
    const auto warn = [&](const std::string& text) {
        if (call.context().verbosity >= 0) call.context().console.err(fmt::format("warning: {}\n", base::escape(text)));
    };
    for (const auto& note : prepared.notes) call.note(note);
    auto& run = prepared.run;
    if (run.options.drain) {
        const auto review = drive::review_drain(*cluster.workloads, module, run);
        for (const auto& warning : review.warnings) warn(warning);
        if (drive::put_last(run, review.own_node))
            call.note(fmt::format("node {} comes last: this runs on it", review.own_node));
    }
    run.options.max_unavailable = share.of(run.nodes.size());
    put_place(run, cluster.place);
    for (const auto& text : stops_that_never_come(run)) warn(text);
    call.require_going_on();
}

void say_definitions(Rehearsal& rehearsal, const std::string& names) {
    for (const auto name : base::split(names, ','))
        if (!name.empty()) rehearsal.action("cluster", fmt::format("create CustomResourceDefinition {}", name));
}

drive::Ended dry_walk(Access& access, Rehearsal& rehearsal, const upgrade::Run& prepared, drive::DryStore& dry_store,
                      cluster::NodeRunner& runner) {
    const auto sink = rehearsal.sink();
    drive::DryWorkloads dry_workloads(*access.cluster.opened().workloads, sink);
    drive::DryRunner dry_runner(runner, sink);
    drive::MemoryJournal journal;
    auto run = prepared;
    // Stops for people make no sense when nothing happens.
    run.options.canary = run.options.pause_after = run.options.soak_ms = 0;
    run.options.max_unavailable = 1;
    run.options.count_unavailable = false;
    run.options.between.clear();
    run.options.check.clear();
    drive::Recorder recorder(run, journal, access.call.clock(),
                             [&](const upgrade::Event& event, const std::string&) {
                                 if (event.kind == upgrade::EventKind::intent && !event.node.empty())
                                     rehearsal.step(event.node, event.to);
                             });
    const auto stopped = [&] { return access.call.stopped(); };
    drive::ModuleActor actor(dry_store, dry_workloads, dry_runner, recorder, access.call.clock(), stopped);
    return drive::Driver(actor, recorder, access.call.clock(), stopped).walk();
}

Launched launch_module(Access& access, upgrade::Run run, cluster::NodeRunner& runner) {
    const auto& cluster = access.cluster.opened();
    if (cluster.directory != nullptr) {
        std::vector<std::string> names;
        for (const auto& node : run.nodes) names.push_back(node.name);
        const auto subject = upgrade::module::subject_of(run);
        cluster.directory->check_editable(names, api::label_version_module(subject.ns, subject.name));
    }
    const auto old = access.record.load();
    if (old && upgrade::is_followed(*old) && upgrade::module::is_apply(*old) && !upgrade::module::is_apply(run))
        access.call.note(fmt::format("the apply before this left out {}: kmm-upgrade apply",
                                     base::join(upgrade::describe(*old).follows, " ")));
    return launch(access, std::move(run), module_hands(access, runner));
}

}  // namespace kmm::tool_upgrade
