// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade doctor: what is left behind, in the record and in the cluster. Takes no lock and changes nothing.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "cluster/kube_store.hpp"
#include "cluster/plugin_store.hpp"
#include "kmm-upgrade/session.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kmm-upgrade/view.hpp"
#include "kube/lease.hpp"
#include "plan/doctor.hpp"
#include "render/worker_task.hpp"
#include "upgrade/planner.hpp"

namespace kmm::tool_upgrade {
namespace {

using value::Node;

Diagnostic warning(std::string code, std::string message, std::string fix) {
    return {Severity::warning, std::move(code), std::move(message), std::nullopt, std::move(fix), Exit::checks_failed};
}

/// A run that goes on, with nobody at work on it.
void examine_record(Session& session, const upgrade::Run& run, Diagnostics& found) {
    if (session.directory().holder()) return;
    found.push_back(warning("run-open",
                            fmt::format("the upgrade of {} to {} is in state {}, and no process is at work on it{}", run.module(), run.to_text(),
                                        run.state, upgrade::cordon_note(run)),
                            base::join(upgrade::next_commands(run), ", or: ")));
}

/// Worker Pods of kmm-upgrade that no run on this host has to do with.
void examine_pods(kube::Client& client, const std::string& lineage, Diagnostics& found) {
    kube::ListQuery query;
    query.label_selector = fmt::format("{}={}", render::k_label_managed_by, render::k_task_manager);
    for (const auto& pod : client.list_all(kube::resources::k_pods, query)) {
        const auto run = pod.get_string({"metadata", "labels", render::k_label_run});
        if (run == lineage) continue;
        const auto ns = pod.get_string({"metadata", "namespace"});
        const auto name = pod.get_string({"metadata", "name"});
        found.push_back(warning("worker-pod-left",
                                fmt::format("worker Pod {}/{} ({} on node {}, {}) is of run {}, which this state directory has no record of", ns, name,
                                            pod.get_string({"metadata", "labels", render::k_label_verb}), pod.get_string({"spec", "nodeName"}),
                                            pod.get_string({"status", "phase"}), base::escape(run)),
                                fmt::format("if nobody is at work on it: kubectl delete pod -n {} {}", ns, name)));
    }
}

/// A Lease that was not renewed for four times its duration, by the clock of this host.
void examine_lease(Session& session, kube::Client& client, const api::Module& module, const std::string& given_ns, Diagnostics& found) {
    kube::LeaseOptions options;
    options.namespace_ = given_ns.empty() ? module.meta.namespace_ : given_ns;
    options.name = lease_name(module.meta.namespace_, module.meta.name);
    const auto state = kube::Lease(client, options).look();
    if (!state || state->holder.empty()) return;
    auto time = state->renew_time;  // with microseconds
    if (const auto dot = time.find('.'); dot != std::string::npos) time = time.substr(0, dot) + "Z";
    const auto renewed = base::parse_rfc3339(time);
    if (renewed && session.clock().now_unix() - *renewed <= 4 * state->duration.count()) return;
    found.push_back(warning("lease-left",
                            fmt::format("Lease {}/{} is held by {}, who has renewed it last at {}", options.namespace_, options.name,
                                        base::escape(state->holder), renewed ? base::format_rfc3339(*renewed) : "no time that can be read"),
                            fmt::format("if that is certainly gone: --break-lock '{}' with start or resume", base::escape(state->holder))));
}

/// DaemonSets of one role and version of a Module, made before and after KMM renamed its label.
void examine_daemon_sets(kube::Client& client, const api::Module& module, Diagnostics& found) {
    const auto& ns = module.meta.namespace_;
    kube::ListQuery query;
    query.namespace_ = ns;
    query.label_selector = fmt::format("{}={}", api::k_label_module_name, module.meta.name);
    std::map<std::string, std::vector<std::string>> of_today, of_before;
    for (const auto& set : client.list_all(kube::resources::k_daemon_sets, query)) {
        const auto name = set.get_string({"metadata", "name"});
        const auto text = [&](const std::string& key) { return set.get_string({"metadata", "labels", key}); };
        const auto role = text(std::string(api::k_label_role));
        const auto before = text(api::label_version_device_plugin(ns, module.meta.name));
        const auto today = text(api::label_version_schedule_pod(ns, module.meta.name));
        if (!today.empty()) of_today[role + " " + today].push_back(name);
        else if (!before.empty()) of_before[role + " " + before].push_back(name);
    }
    for (const auto& [key, names] : of_before)
        if (of_today.contains(key))
            found.push_back(warning("daemonset-twice",
                                    fmt::format("Module {} has two DaemonSets for {}: {} is of KMM up to v2.6.0, {} of today", module.full_name(), key,
                                                base::join(names, ", "), base::join(of_today.at(key), ", ")),
                                    fmt::format("kubectl delete daemonset -n {} {}", ns, base::join(names, " "))));
}

}  // namespace

Exit run_doctor(const cli::Args& args, cli::Context& context) {
    Session session(args, context);
    const auto run = session.load();
    const bool goes_on = run && !upgrade::is_final_run_state(run->state);
    const auto store = session.open_cluster(session.cluster_place(goes_on ? run->cluster_place : ""));
    Diagnostics found;
    plan::Recorded recorded;
    if (goes_on) {
        examine_record(session, *run, found);
        recorded.cordon_owner = run->cordon_owner();
        for (auto& node : upgrade::cordoned_nodes(*run)) recorded.cordoned.insert(std::move(node));
    }
    const auto snapshot = store->read();
    for (const auto& diagnostic : snapshot.diagnostics)
        if (diagnostic.severity != Severity::note) found.push_back(diagnostic);
    for (auto& diagnostic : plan::examine(snapshot.objects, recorded)) found.push_back(std::move(diagnostic));
    if (auto* server = dynamic_cast<cluster::KubeStore*>(store.get())) {
        examine_pods(server->client(), goes_on ? run->lineage : "", found);
        for (const auto& module : snapshot.objects.modules) {
            const bool at_work = goes_on && run->module() == module.full_name() && session.directory().holder();
            if (!at_work) examine_lease(session, server->client(), module, args.get("lease-namespace").value_or(""), found);
            if (cluster::has_plugins(module)) examine_daemon_sets(server->client(), module, found);
        }
    }
    const auto notes = static_cast<std::size_t>(
        std::count_if(found.begin(), found.end(), [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::note; }));
    const auto exit = notes == found.size() ? Exit::ok : Exit::checks_failed;
    auto list = Node::sequence();
    for (const auto& diagnostic : found) list.push_back(cli::diagnostic_node(diagnostic));
    if (print_document(context, Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Diagnosis"}, {"findings", std::move(list)}}))) return exit;
    for (const auto& diagnostic : found) context.console.out(cli::diagnostic_text(diagnostic, false));
    if (found.empty()) context.console.out(fmt::format("nothing is left behind in {}\n", store->describe()));
    else context.console.out(fmt::format("\n{} to mend, {} to know; nothing was changed\n", found.size() - notes, notes));
    return exit;
}

}  // namespace kmm::tool_upgrade
