// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/walk.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "drive/prepare.hpp"
#include "kmm-upgrade/record_trust.hpp"
#include "kmm-upgrade/view.hpp"
#include "plan/plan.hpp"
#include "upgrade/planner.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Loads under the lock: what is read is what will be changed.
upgrade::Run locked_run(RecordAccess& record, const std::string& operation) {
    record.directory().open(false);
    record.lock(operation);
    auto run = record.must_load();
    require_trust(record.directory().path(), run, record.call().args(), record.call().context());
    return run;
}

/// The runner of `run`, with all that `extent` needs on the cluster, which is open. Options of the command line are put over those of the run.
std::unique_ptr<cluster::NodeRunner> runner_of(Access& access, upgrade::Run& run, Extent extent) {
    auto& cluster = access.cluster.opened();
    drive::require_cluster_of(run, *cluster.store);
    access.reach.choose(run.options, cluster.place, Reach::Age::recorded);
    drive::require_one_host(run.options, run.nodes.size());
    Target target{run.module_namespace, run.module_name, "", run.lineage, {}};
    for (const auto& node : run.nodes)
        if (!node.target_entry.is_null()) target.service_account = api::decode_node_module(node.target_entry).service_account_name;
    if (extent != Extent::record) {
        if (run.options.via == upgrade::Via::self)
            for (const auto& module : cluster.store->read().objects.modules)
                if (module.full_name() == run.module()) target.rights = cluster::plugin_rules(module);
        auto ahead = run.options;
        ahead.drain = ahead.drain && extent == Extent::onward && upgrade::drains_ahead(run);
        access.cluster.expect(ahead, "");
        access.cluster.secure(run.options, target, ClusterAccess::Purpose::change);
        access.cluster.create_kinds(run.created_definitions);
    }
    return access.reach.runner(run.options, target);
}

/// Runs `body`. If it ends because the Lease is lost, or the API server out of reach, that pause is recorded before the error goes on.
drive::Ended recording_loss(drive::Driver& driver, const drive::Recorder& recorder, const std::function<drive::Ended()>& body) {
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

bool was_left_out(const upgrade::Run& run, const std::string& name) {
    return std::any_of(run.left_out.begin(), run.left_out.end(), [&](const upgrade::LeftOut& node) { return node.name == name; });
}

/// Notes nodes that `run`, which has walked all nodes of its Module to the end, does not have because they came later. Reads the whole
/// cluster.
void tell_newcomers(Access& access, const upgrade::Run& run) {
    if (!run.options.all_nodes || access.call.context().verbosity < 0) return;
    std::vector<std::string> names;      // that came later
    std::vector<std::string> returned;   // of those that were left out
    try {
        const auto snapshot = access.cluster.opened().store->read();
        if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
        const auto& objects = snapshot.objects;
        for (const auto& module : objects.modules) {
            if (module.full_name() != run.module()) continue;
            const auto tolerations = plan::loader_tolerations(module);
            for (const auto& node : objects.nodes)
                if (run.find(node.meta.name) == nullptr && plan::selects(module.selector, node.meta.labels) && plan::tolerates(tolerations, node.taints))
                    (was_left_out(run, node.meta.name) ? returned : names).push_back(node.meta.name);
        }
    } catch (const Error& error) {
        // The run has ended well, whatever can be told besides.
        const auto place = error.position() ? error.position()->to_string() + ": " : "";
        access.call.note("whether nodes came after the start could not be seen: " + place + error.message());
        return;
    }
    for (const auto& name : returned)
        access.call.note(fmt::format("node {} was left out at the start and can take the module now: kmm-upgrade start module {} --to {} --node {}",
                                     name, run.module(), run.to_version, name));
    if (names.empty()) return;
    access.call.note(fmt::format("{} {} selected by the Module and came after the start: kmm-upgrade start module {} --to {}",
                                 names.size() == 1 ? "node " + names.front() : fmt::format("nodes {}", base::join(names, ", ")),
                                 names.size() == 1 ? "is" : "are", run.module(), run.to_version));
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

Walk::Walk(Access& in, const upgrade::Run& run, cluster::NodeRunner& runner, std::unique_ptr<cluster::PluginStore> stepped)
    : access(in),
      plugins(std::move(stepped)),
      journal(in.record.directory()),
      progress(in.call.context(), run),
      recorder(run, journal, in.call.clock(), told_to_command(progress, run.options.on_event, [&in] { return in.call.stopped(); })),
      driver(plugins ? static_cast<cluster::ClusterStore&>(*plugins) : *in.cluster.opened().store, *in.cluster.opened().workloads, runner,
             recorder, in.call.clock(), [&in] { return in.call.stopped(); }) {
    driver.set_pace(pace_of(progress));
}

drive::Ended Walk::carry_out(const std::function<drive::Ended()>& body) {
    const auto ended = progress.stop(recording_loss(driver, recorder, body));
    if (ended == drive::Ended::complete) tell_newcomers(access, recorder.run());
    return ended;
}

RecordedWalk::RecordedWalk(Access& access, const std::string& operation, Extent extent)
    : found(locked_run(access.record, operation)),
      opened(access.cluster.open(access.cluster.place(&found))),
      runner(runner_of(access, found, extent)),
      walk(access, found, *runner, extent != Extent::record ? access.reach.plugins(found) : nullptr) {}

Exit finish(Call& call, drive::Ended ended, const upgrade::Run& run) {
    print_summary(call.context(), run, ended == drive::Ended::interrupted);
    return exit_of(call, ended, run);
}

Exit finish_one(Call& call, drive::Ended ended, const upgrade::Run& run) {
    const auto& output = call.context().output;
    if (output != "json" && output != "yaml") print_summary(call.context(), run, false);
    return exit_of(call, ended, run);
}

}  // namespace kmm::tool_upgrade
