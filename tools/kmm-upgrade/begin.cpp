// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/begin.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "drive/drain.hpp"
#include "kmm-upgrade/record_trust.hpp"
#include "kmm-upgrade/view.hpp"
#include "record/space.hpp"
#include "upgrade/replay.hpp"

namespace kmm::tool_upgrade {

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
        if (diagnostic.severity == Severity::warning) context.console.err(cli::diagnostic_text(diagnostic, context.color_err));
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
    for (const auto& [option, after] : {std::pair{"canary", run.options.canary}, std::pair{"pause-after", run.options.pause_after}})
        if (after >= count) texts.push_back(fmt::format("--{} {} does not stop this run: it has {}, so none follows; {}", option, after, nodes, hint));
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
        if (drive::put_last(run, review.own_node)) call.note(fmt::format("node {} comes last: this runs on it", review.own_node));
    }
    run.options.max_unavailable = share.of(run.nodes.size());
    put_place(run, cluster.place);
    for (const auto& text : stops_that_never_come(run)) warn(text);
    call.require_going_on();
}

void put_place(upgrade::Run& run, const cluster::Place& place) {
    run.cluster_place = place.text();
    run.cluster_context = place.context;
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
    drive::Driver driver(dry_store, dry_workloads, dry_runner, recorder, access.call.clock(), [&] { return access.call.stopped(); });
    return driver.walk();
}

Launched launch(Access& access, upgrade::Run run, cluster::NodeRunner& runner) {
    auto& call = access.call;
    auto& record = access.record;
    const auto& cluster = access.cluster.opened();
    if (cluster.directory != nullptr) {
        std::vector<std::string> names;
        for (const auto& node : run.nodes) names.push_back(node.name);
        cluster.directory->check_editable(names, api::label_version_module(run.module_namespace, run.module_name));
    }
    run.cluster_identity = cluster.store->identity(true);
    // Not archived first: a run of `apply` says what is left to do after it until the next one does.
    const auto old = record.load();
    if (old && old->is_to_be_followed() && !run.is_apply())
        call.note(fmt::format("the apply before this left out {}: kmm-upgrade apply", old->rest.modules));
    record::with_space_explained(record.directory().path(), "the same command again", [&] {
        if (old) record.directory().succeed(old->module_name + "-" + old->to_text(), upgrade::encode(run));
        else record.directory().begin(upgrade::encode(run));
    });
    seal_record(record.directory().path(), run);
    access.cluster.create_kinds(run.created_definitions);
    const auto begun = fmt::format("{} {}{}: {} -> {} on {} node{}", clock_text(run.created), run.state,
                                   run.is_apply() ? " " + run.module() : "", run.from_text(), run.to_text(), run.nodes.size(),
                                   run.nodes.size() == 1 ? "" : "s");
    if (call.context().verbosity >= 0) call.context().console.err(base::escape(begun) + "\n");
    Walk walk(access, upgrade::replay({{run.created, upgrade::encode(run)}}), runner, access.reach.plugins(run));
    walk.recorder.save();
    const auto ended = walk.carry_out([&] {
        if (!run.options.manual) return walk.driver.walk();
        walk.driver.pause("manual", "as --manual asks; go on with step");
        return drive::Ended::paused;
    });
    return {ended, walk.recorder.run()};
}

}  // namespace kmm::tool_upgrade
