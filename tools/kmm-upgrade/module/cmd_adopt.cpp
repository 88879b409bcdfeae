// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade adopt: the record again, out of what the lost run has left in the cluster.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cluster/live/kube_store.hpp"
#include "cluster/seam/workloads.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/begin.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kube/lease.hpp"
#include "render/worker_task.hpp"
#include "upgrade/drive_module/drain.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/prepare_module/adopt.hpp"

namespace kmm::tool_upgrade {
namespace {

/// What an adoption calls itself as holder of the Lease: it is no run, and no second adoption may take it for its own
/// earlier one.
constexpr const char* k_adopter = "adopt-";

bool is_unfinished(const upgrade::Run& run) {
    return run.adopted && !run.rollback &&
           (run.events <= 2 || (run.paused && run.pause_reason == drive::k_pause_adopting));
}

/// A record that an adoption did not write to its end is no obstacle.
void require_free_or_unfinished(const std::optional<upgrade::Run>& run) {
    if (!run || !is_unfinished(*run)) require_free(run);
}

drive::AdoptRequest adopt_request_of(const cli::Args& args) {
    drive::AdoptRequest request;
    take_module(args, request.start);
    request.start.to_version = args.get("to").value_or("");
    take_walk_options(args, request.start);
    const auto or_none = [&](const char* name) -> std::optional<std::string> {
        const auto given = args.get(name);
        if (given && given->empty())
            throw Error(Exit::usage, "bad-value", fmt::format("--{} is empty", name))
                .hint(fmt::format("use --{} none if there is none", name));
        return given && *given == "none" ? std::optional<std::string>("") : given;
    };
    request.from = or_none("from");
    request.run = or_none("run");
    if (args.get("to") && request.start.to_version.empty())
        throw Error(Exit::usage, "bad-value", "--to is empty").hint("leave it out: the version of the Module is meant");
    return request;
}

void add_lease_signs(kube::Client& client, const api::Objects& objects, const std::string& lease_ns,
                     std::vector<drive::RunSign>& signs) {
    for (const auto& module : objects.modules) {
        kube::LeaseOptions options;
        options.namespace_ = lease_ns.empty() ? module.meta.namespace_ : lease_ns;
        options.name = lease_name(module.meta.namespace_, module.meta.name);
        const auto state = kube::Lease(client, options).look();
        if (!state) continue;
        const auto lineage = lineage_of_holder(state->holder);
        if (lineage.empty() || lineage.starts_with(k_adopter)) continue;
        signs.push_back({lineage, module.meta.namespace_, module.meta.name, "",
                         fmt::format("Lease {}/{} of {}", options.namespace_, options.name, state->holder), false});
    }
}

void add_pod_signs(kube::Client& client, std::vector<drive::RunSign>& signs) {
    kube::ListQuery query;
    query.label_selector = fmt::format("{}={}", render::k_label_managed_by, render::k_task_manager);
    for (const auto& pod : client.list_all(kube::resources::k_pods, query)) {
        const auto label = [&](std::string_view key) { return pod.get_string({"metadata", "labels", key}); };
        const auto ns = pod.get_string({"metadata", "namespace"});
        const auto verb = label(render::k_label_verb);
        signs.push_back({label(render::k_label_run), ns, label(render::k_label_module),
                         pod.get_string({"spec", "nodeName"}),
                         fmt::format("worker Pod {}/{} ({})", ns, pod.get_string({"metadata", "name"}), verb),
                         verb == "load" || verb == "unload"});
    }
}

/// As start does where nodes are drained, if that node is not begun yet.
void put_own_node_last(drive::Adopted& adopted, cluster::Workloads& workloads) {
    auto& run = adopted.run;
    if (!run.options.drain) return;
    const auto own = drive::own_node_of(workloads, run);
    const bool is_begun =
        std::any_of(adopted.events.begin(), adopted.events.end(), [&](const auto& event) { return event.node == own; });
    if (!own.empty() && !is_begun && drive::put_last(run, own))
        adopted.notes.push_back(fmt::format("node {} comes last: this runs on it", own));
}

/// The run as it is once all of `adopted` is recorded in `journal`.
upgrade::Run record_all(const drive::Adopted& adopted, drive::Journal& journal, const sys::Clock& clock) {
    const auto header = upgrade::encode(adopted.run);
    journal.begin(header);
    drive::Recorder recorder(upgrade::replay({{adopted.run.created, header}}, upgrade::module::procedures()), journal,
                             clock, {});
    for (const auto& event : adopted.events) recorder.record(event);
    recorder.save();
    return recorder.run();
}

}  // namespace

Exit run_adopt(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    auto& call = access.call;
    auto request = adopt_request_of(args);
    const auto share = max_unavailable(args);
    const bool dry = args.flag("dry-run");
    const auto place = access.cluster.place();
    access.reach.choose(request.start.options, place, Reach::Age::adopted);
    if (!dry) access.record.open_locked("adopt");
    const auto old = access.record.load();
    require_free_or_unfinished(old);
    auto& cluster = access.cluster.open(place);
    if (!dry) access.cluster.lock_directory();
    auto* server = cluster.server;
    if (server != nullptr) server->require_kinds();
    auto snapshot = cluster.store->read();
    if (request.start.name.empty()) require_matches(snapshot.objects, request.start.ns, request.start.selector);
    if (server != nullptr) {
        add_lease_signs(server->client(), snapshot.objects, request.start.options.lease_namespace, request.signs);
        add_pod_signs(server->client(), request.signs);
    }
    auto adopted = drive::adopt(snapshot, call.clock(), request);
    access.cluster.expect(adopted.run.options, "");
    auto named = request.start;
    const auto subject = upgrade::module::subject_of(adopted.run);
    named.ns = subject.ns;
    named.name = subject.name;
    auto target = target_of(snapshot, named);
    target.lineage = k_adopter + request.start.lineage;
    access.cluster.secure(request.start.options, target,
                          dry ? ClusterAccess::Purpose::look : ClusterAccess::Purpose::change);
    // Whoever had the Lease is gone now, and has changed nothing since.
    if (server != nullptr && !dry) adopted = drive::adopt(cluster.store->read(), call.clock(), request);
    auto& run = adopted.run;
    put_own_node_last(adopted, *cluster.workloads);
    const auto wanted = share.of(run.nodes.size());
    run.options.max_unavailable = std::max(wanted, adopted.in_the_middle);
    if (run.options.max_unavailable > wanted)
        adopted.notes.push_back(
            fmt::format("{} in the middle: so many may be in flight",
                        adopted.in_the_middle == 1 ? "1 node is" : fmt::format("{} nodes are", adopted.in_the_middle)));
    put_place(run, place);
    run.cluster_identity = cluster.store->identity(server != nullptr && !dry);
    if (run.options.via == upgrade::Via::self && run.options.worker_image.empty())
        adopted.notes.emplace_back(
            "no --worker-image is recorded: give it to resume, or put worker-image: REGISTRY/kmm-worker:TAG into the "
            "configuration file");
    for (const auto& note : adopted.notes) call.note(note);
    drive::MemoryJournal memory;
    const auto recorded = record_all(adopted, memory, call.clock());
    if (!dry) {
        if (old) access.record.directory().archive(upgrade::describe(*old).slug());
        drive::StateJournal journal(access.record.directory());
        static_cast<void>(record_all(adopted, journal, call.clock()));
        note_unsealed(access.record);
    }
    const PlaceOptions said(args, context.program);
    if (print_document(context, document(recorded, said))) return Exit::ok;
    context.console.out(node_table(recorded, context.console.out_is_terminal() ? context.console.width() : 0) + "\n");
    context.console.out(properties(recorded, std::nullopt, 0, "", said));
    if (dry) context.console.out("nothing was recorded; next: the same command without --dry-run\n");
    return Exit::ok;
}

}  // namespace kmm::tool_upgrade
