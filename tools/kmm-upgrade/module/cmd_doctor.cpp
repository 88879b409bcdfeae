// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade doctor: what is left behind, in the record and in the cluster. Without --fix it takes no lock and changes
// nothing.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cluster/live/kube_store.hpp"
#include "cluster/live/plugin_store.hpp"
#include "cluster/seam/workloads.hpp"
#include "kmm-upgrade/module/mend.hpp"
#include "kmm-upgrade/reach/cluster_access.hpp"
#include "kmm-upgrade/reach/reach.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kube/lease.hpp"
#include "plan/fleet/doctor.hpp"
#include "render/worker_task.hpp"
#include "upgrade/engine/planner.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

using value::Node;

Repair warning(std::string code, std::string message, std::string fix, std::string what = "",
               std::function<void()> act = {}) {
    return {{Severity::warning, std::move(code), std::move(message), std::nullopt, std::move(fix), Exit::checks_failed},
            std::move(what), std::move(act)};
}

std::function<void()> removal(kube::Client& client, const kube::Resource& resource, const kube::Key& key,
                              const std::string& uid, std::optional<int> grace_seconds = std::nullopt) {
    return [&client, &resource, key, uid, grace_seconds] {
        kube::DeleteOptions options;
        options.uid = uid;
        options.grace_seconds = grace_seconds;
        if (client.remove(resource, key, options) == kube::Deletion::other_uid)
            throw Error(Exit::locked, "conflict", "another object has this name now");
    };
}

/// A run that goes on, with nobody at work on it.
void examine_record(RecordAccess& record, const upgrade::Run& run, std::vector<Repair>& found) {
    if (record.directory().holder()) return;
    const auto text = upgrade::describe(run);
    found.push_back(warning("run-open",
                            fmt::format("the upgrade of {} to {} is in state {}, and no process is working on it{}",
                                        text.subject(), text.to, run.state, upgrade::cordon_note(run)),
                            base::join(upgrade::next_commands(run), ", or: ")));
    found.back().ns = text.space;
}

/// Worker Pods of kmm-upgrade that no run on this host has to do with.
void examine_pods(kube::Client& client, const std::string& lineage, std::vector<Repair>& found) {
    kube::ListQuery query;
    query.label_selector = fmt::format("{}={}", render::k_label_managed_by, render::k_task_manager);
    for (const auto& pod : client.list_all(kube::resources::k_pods, query)) {
        const auto run = pod.get_string({"metadata", "labels", render::k_label_run});
        if (run == lineage) continue;
        const auto ns = pod.get_string({"metadata", "namespace"});
        const auto name = pod.get_string({"metadata", "name"});
        const auto phase = pod.get_string({"status", "phase"});
        const bool has_ended = phase == "Succeeded" || phase == "Failed";
        found.push_back(warning(
            "worker-pod-left",
            fmt::format(
                "worker Pod {}/{} ({} on node {}, {}) is of run {}, which this state directory has no record of", ns,
                name, pod.get_string({"metadata", "labels", render::k_label_verb}),
                pod.get_string({"spec", "nodeName"}), phase, base::escape(run)),
            fmt::format("if nobody is working on it: kubectl delete pod -n {} {}", ns, name),
            fmt::format("delete Pod {}/{}", ns, name),
            has_ended ? removal(client, kube::resources::k_pods, {ns, name}, pod.get_string({"metadata", "uid"}))
                      : std::function<void()>()));
        found.back().ns = ns;
    }
}

/// Whether who holds a Lease has renewed it within four times its duration, by the clock of this host.
bool may_live(Call& call, const kube::LeaseState& state, std::optional<std::int64_t>& renewed) {
    auto time = state.renew_time;  // with microseconds
    if (const auto dot = time.find('.'); dot != std::string::npos) time = time.substr(0, dot) + "Z";
    renewed = base::parse_rfc3339(time);
    return renewed && call.clock().now_unix() - *renewed <= 4 * state.duration.count();
}

/// A Lease that nobody renews. With `Lives::refuse` one that somebody may be renewing is an error.
enum class Lives { skip, refuse };
void examine_lease(Call& call, kube::Client& client, const api::Module& module, Lives lives,
                   std::vector<Repair>& found) {
    const auto given_ns = namespace_option(call.args(), "lease-namespace");
    kube::LeaseOptions options;
    options.namespace_ = given_ns.empty() ? module.meta.namespace_ : given_ns;
    options.name = lease_name(module.meta.namespace_, module.meta.name);
    const auto state = kube::Lease(client, options).look();
    if (!state || state->holder.empty()) return;
    std::optional<std::int64_t> renewed;
    if (may_live(call, *state, renewed)) {
        if (lives == Lives::refuse) throw kube::lease_held_error(options, *state);
        return;
    }
    found.push_back(warning(
        "lease-left",
        fmt::format("Lease {}/{} is held by {}, who has renewed it last at {}", options.namespace_, options.name,
                    base::escape(state->holder), renewed ? base::format_rfc3339(*renewed) : "no time that can be read"),
        fmt::format("if that is certainly gone: --break-lock '{}' with start or resume", base::escape(state->holder)),
        fmt::format("free Lease {}/{}", options.namespace_, options.name), [&client, options, was = *state] {
            kube::Lease lease(client, options);
            const auto now = lease.look();
            if (!now || now->resource_version != was.resource_version)
                throw Error(Exit::locked, "conflict", "somebody else changed it");
            lease.break_holder(was.holder);
        }));
    found.back().ns = module.meta.namespace_;
}

/// DaemonSets of one role and version of a Module, made before and after KMM renamed its label.
void examine_daemon_sets(kube::Client& client, const api::Module& module, std::vector<Repair>& found) {
    const auto& ns = module.meta.namespace_;
    kube::ListQuery query;
    query.namespace_ = ns;
    query.label_selector = fmt::format("{}={}", api::k_label_module_name, module.meta.name);
    std::map<std::string, std::vector<std::string>> of_today, of_before;
    std::map<std::string, std::string> uids;
    for (const auto& set : client.list_all(kube::resources::k_daemon_sets, query)) {
        const auto name = set.get_string({"metadata", "name"});
        uids[name] = set.get_string({"metadata", "uid"});
        const auto text = [&](const std::string& key) { return set.get_string({"metadata", "labels", key}); };
        const auto role = text(std::string(api::k_label_role));
        const auto before = text(api::label_version_device_plugin(ns, module.meta.name));
        const auto today = text(api::label_version_schedule_pod(ns, module.meta.name));
        if (!today.empty()) of_today[role + " " + today].push_back(name);
        else if (!before.empty()) of_before[role + " " + before].push_back(name);
    }
    for (const auto& [key, names] : of_before) {
        if (!of_today.contains(key)) continue;
        std::vector<std::function<void()>> removals;
        for (const auto& name : names)
            removals.push_back(removal(client, kube::resources::k_daemon_sets, {ns, name}, uids.at(name)));
        found.push_back(
            warning("daemonset-twice",
                    fmt::format("Module {} has two DaemonSets for {}: {} is of KMM up to v2.6.0, {} of today",
                                module.full_name(), key, base::join(names, ", "), base::join(of_today.at(key), ", ")),
                    fmt::format("kubectl delete daemonset -n {} {}", ns, base::join(names, " ")),
                    fmt::format("delete DaemonSet {} in {}", base::join(names, ", "), ns), [removals] {
                        for (const auto& remove : removals) remove();
                    }));
        found.back().ns = ns;
    }
}

/// What the plan finds, with the writes that mend it.
Repair repair_of(plan::Finding finding, cluster::ClusterStore& store, cluster::Workloads& workloads,
                 kube::Client* client) {
    using Kind = plan::Mend::Kind;
    Repair repair;
    repair.diagnostic = std::move(finding.diagnostic);
    const auto& mend = finding.mend;
    repair.what = mend.text();
    repair.module = mend.module;
    repair.ns = mend.namespace_.empty() ? mend.module.substr(0, mend.module.find('/')) : mend.namespace_;
    if (mend.kind == Kind::remove_labels)
        repair.act = [&store, labels = mend.labels] {
            for (const auto& label : labels)
                store.patch_node_labels(label.node, {{label.key, std::nullopt}},
                                        {{label.key, std::optional<std::string>(label.value)}});
        };
    if (mend.kind == Kind::lift_cordon) {
        repair.named = mend.node;
        repair.act = [&workloads, node = mend.node, owner = mend.owner] {
            const auto there = workloads.uncordon(node, owner);
            if (there.unschedulable)
                throw Error(Exit::locked, "conflict",
                            fmt::format("it is cordoned by {} now",
                                        there.owner.empty() ? "somebody else" : base::escape(there.owner)));
        };
    }
    // Without a kubelet nobody else ends it. In a directory it is a file of its owner's.
    if (mend.kind == Kind::remove_pod && client != nullptr)
        repair.act = removal(*client, kube::resources::k_pods, {mend.namespace_, mend.name}, mend.uid, 0);
    return repair;
}

/// Nobody else may be at work, and nobody may begin.
void claim_record(RecordAccess& record) {
    try {
        record.directory().open(false);
    } catch (const Error& error) {
        if (error.exit() == Exit::not_found) return;  // no record to claim
        throw;
    }
    record.lock("doctor --fix");
}

/// Mends what is to be mended and tells of each finding; the exit code.
Exit report(Call& call, const std::vector<Repair>& found, const std::optional<MendChoice>& choice,
            const std::string& place) {
    auto& context = call.context();
    const bool is_text = context.output == "table" || context.output == "wide";
    auto list = Node::sequence();
    std::size_t notes = 0, mended = 0, open = 0;
    bool stopped = false;
    for (const auto& repair : found) {
        const bool is_note = repair.diagnostic.severity == Severity::note;
        if (is_text) context.console.out(cli::diagnostic_text(repair.diagnostic, false));
        if (context.output == "name") context.console.out(repair.diagnostic.code + "\n");
        auto outcome = Mended::none;
        std::string why;
        auto node = cli::diagnostic_node(repair.diagnostic);
        if (choice) {
            outcome = mend(call, repair, *choice, why);
            node.set("fix", to_string(outcome));
            if (!why.empty()) node.set("fixError", why);
        }
        list.push_back(std::move(node));
        stopped = stopped || outcome == Mended::stopped || (outcome == Mended::failed && call.stopped());
        if (outcome == Mended::stopped && is_text) break;
        if (outcome == Mended::done) ++mended;
        else if (is_note) ++notes;
        else ++open;
        if (!choice || !is_text) continue;
        const auto left = [&]() -> std::string {
            switch (outcome) {
                case Mended::done: return "";
                case Mended::declined: return "not agreed to";
                case Mended::failed: return why;
                case Mended::stopped: return "interrupted";
                case Mended::none: return "no fix that is safe for certain";
                case Mended::unnamed: return "lifted only by name: --uncordon " + repair.named;
                case Mended::busy: return "the recorded upgrade of its Module has not ended";
                case Mended::elsewhere: return "it is of the whole cluster, and --namespace was given";
            }
            return "";
        }();
        context.console.out(left.empty() ? fmt::format("  fixed:   {}\n", repair.what)
                                         : fmt::format("  left:    {}\n", left));
    }
    const auto exit = stopped ? call.stop_exit() : open == 0 ? Exit::ok : Exit::checks_failed;
    if (print_document(
            context,
            Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Diagnosis"}, {"findings", std::move(list)}})) ||
        !is_text)
        return exit;
    if (stopped)
        context.console.err(fmt::format("interrupted: {} fixed; kmm-upgrade doctor shows what is left\n", mended));
    else if (found.empty()) context.console.out(fmt::format("nothing is left behind in {}\n", place));
    else if (!choice) context.console.out(fmt::format("\n{} to fix, {} to know; nothing was changed\n", open, notes));
    else context.console.out(fmt::format("\n{} fixed, {} to fix, {} to know\n", mended, open, notes));
    return exit;
}

}  // namespace

Exit run_doctor(const cli::Args& args, cli::Context& context) {
    Call call(args, context);
    RecordAccess record(call);
    ClusterAccess access(record);
    auto choice = mend_choice_of(args, context);
    const auto ns = args.get("namespace").value_or("");
    static_cast<void>(namespace_option(args, "lease-namespace"));
    if (choice) choice->ns = ns;
    const auto run = record.load();
    const bool goes_on = run && !upgrade::is_final_run_state(run->state);
    std::vector<Repair> found;
    plan::Recorded recorded;
    const auto subject = goes_on ? upgrade::describe(*run).subject() : std::string();
    if (goes_on || (run && upgrade::is_followed(*run))) examine_record(record, *run, found);
    if (goes_on) {
        recorded.cordon_owner = run->cordon_owner();
        for (auto& node : upgrade::cordoned_nodes(*run)) recorded.cordoned.insert(std::move(node));
        recorded.module = subject;
        if (choice) choice->open_module = subject;
    }
    if (choice) claim_record(record);
    auto& cluster = access.open(access.place(goes_on ? &*run : nullptr));
    if (choice) access.lock_directory();
    const auto snapshot = cluster.store->read();
    require_matches(snapshot.objects, ns, {});
    for (const auto& diagnostic : snapshot.diagnostics)
        if (diagnostic.severity != Severity::note) found.push_back({diagnostic, "", {}});
    auto* client = cluster.server == nullptr ? nullptr : &cluster.server->client();
    for (auto& finding : plan::examine(snapshot.objects, recorded))
        found.push_back(repair_of(std::move(finding), *cluster.store, *cluster.workloads, client));
    if (client != nullptr) {
        examine_pods(*client, goes_on ? run->lineage : "", found);
        for (const auto& module : snapshot.objects.modules) {
            const bool at_work = !choice && goes_on && subject == module.full_name() && record.directory().holder();
            if (!at_work) examine_lease(call, *client, module, choice ? Lives::refuse : Lives::skip, found);
            if (cluster::has_plugins(module)) examine_daemon_sets(*client, module, found);
        }
    }
    if (goes_on) {
        for (auto& repair : found)
            if (repair.module == subject)
                repair.diagnostic.hint =
                    "the recorded upgrade sets them: kmm-upgrade resume; if they are still there once it has ended: " +
                    repair.diagnostic.hint;
    }
    if (!ns.empty()) std::erase_if(found, [&](const Repair& repair) { return !repair.ns.empty() && repair.ns != ns; });
    if (choice) require_cordons(*choice, found);
    const PlaceOptions said(args, context.program);
    for (auto& repair : found) repair.diagnostic.hint = said.put_into(repair.diagnostic.hint);
    return report(call, found, choice, cluster.store->describe());
}

}  // namespace kmm::tool_upgrade
