// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module_nodes/operator_view.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/labels.hpp"

namespace kmm::drive {
namespace {

constexpr const char* k_operator_hint =
    "is KMM's operator running? kubectl get pods -A -l app.kubernetes.io/part-of=kmm";

std::string plugin_pods_hint(const OperatorView& view) {
    return fmt::format("kubectl get pods -n {} -l {}={} --field-selector spec.nodeName={}", view.ns,
                       api::k_label_module_name, view.name, view.node.node.meta.name);
}

/// The worker Pod in words, and where its output is.
Awaited awaited_work(const OperatorView& view, const std::string& work) {
    Awaited found;
    if (!view.worker_pod) {
        found.text = work + " (no worker Pod yet)";
        found.hint = k_operator_hint;
        return found;
    }
    const auto& pod = *view.worker_pod;
    found.text =
        fmt::format("{} (worker Pod {} is {}{})", work, pod.meta.name, pod.phase.empty() ? "unknown" : pod.phase,
                    pod.worker_restarts > 0 ? ", it has failed before" : "");
    found.hint =
        fmt::format("kubectl {} -n {} {}", pod.phase == "Pending" ? "describe pod" : "logs", view.ns, pod.meta.name);
    return found;
}

std::string label_text(const char* name, const std::string& value) { return fmt::format("label {}={}", name, value); }

std::optional<Awaited> awaited_gone(const OperatorView& view, const std::string& version) {
    const auto& labels = view.labels;
    const auto schedule = fmt::format("{}", api::to_string(view.key));
    if (!labels.schedule.empty() && labels.schedule != version)
        return Awaited{fmt::format("KMM to take {} away", label_text(schedule.c_str(), labels.schedule)),
                       k_operator_hint};
    if (!labels.worker.empty() && labels.worker != version)
        return Awaited{fmt::format("Pods of the device plugin or DRA driver of {} to leave the node", labels.worker),
                       plugin_pods_hint(view), true};
    const auto& spec = view.node.spec;
    if (spec && (version.empty() || spec->version != version))
        return Awaited{fmt::format("KMM to take {} out of the NodeModulesConfig",
                                   spec->version.empty() ? "the module" : spec->version),
                       k_operator_hint};
    const auto& status = view.node.status;
    if (status && (version.empty() || status->version != version))
        return awaited_work(view,
                            fmt::format("KMM to unload {}", status->version.empty() ? "the module" : status->version));
    if (version.empty() && view.node.ready)
        return Awaited{fmt::format("KMM to take label {} away", api::label_ready(view.ns, view.name)), k_operator_hint};
    return std::nullopt;
}

std::optional<Awaited> awaited_loaded(const OperatorView& view, const std::string& version) {
    const auto& spec = view.node.spec;
    const auto& status = view.node.status;
    const auto images =
        fmt::format("does its image exist? kubectl get moduleimagesconfigs -n {} {} -o yaml", view.ns, view.name);
    if (view.labels.worker.empty() && view.node.ready)
        return Awaited{fmt::format("KMM to take label {} away", api::label_ready(view.ns, view.name)), k_operator_hint};
    if (view.labels.worker.empty())
        return Awaited{fmt::format("KMM to set {}", label_text("version-worker-pod", version)), k_operator_hint};
    if (view.labels.schedule.empty())
        return Awaited{
            fmt::format("KMM to set {}", label_text(fmt::format("{}", api::to_string(view.key)).c_str(), version)),
            k_operator_hint};
    if (!spec || spec->version != version)
        return Awaited{fmt::format("KMM to write {} into the NodeModulesConfig", version), images};
    const bool is_of_boot = status && (status->boot_id.empty() || status->boot_id == view.node.node.boot_id);
    if (!is_of_boot || status->version != version || status->config != spec->config)
        return awaited_work(view, fmt::format("KMM to load {}", version));
    // .version.ready comes with .ready, and stays as it was where that one was never taken away (facts: KMM 1.1, 5.6).
    if (!view.node.ready)
        return Awaited{fmt::format("KMM to set label {}", api::label_ready(view.ns, view.name)), k_operator_hint};
    if (view.plugin_missing)
        return Awaited{fmt::format("the device plugin of {} to be ready", version), plugin_pods_hint(view)};
    if (view.dra_missing)
        return Awaited{fmt::format("the DRA driver of {} to be ready", version), plugin_pods_hint(view)};
    return std::nullopt;
}

}  // namespace

const plan::LabelRow& OperatorView::row(const std::string& version) const {
    auto then = labels;
    then.module = version;
    return plan::label_row(then);
}

LiveModule OperatorView::live() const {
    LiveModule found;
    const auto& status = node.status;
    if (!status || (!status->boot_id.empty() && status->boot_id != node.node.boot_id)) return found;
    found.presence = Presence::live;
    found.said_version = status->version;
    return found;
}

OperatorView operator_view(const api::Objects& objects, const std::string& node, const std::string& ns,
                           const std::string& name) {
    OperatorView view;
    view.ns = ns;
    view.name = name;
    view.node = view_of(objects, node, ns, name);
    view.key = plan::detect_schedule_key(objects);
    const auto& labels = view.node.node.meta.labels;
    view.labels = plan::version_labels(labels, ns, name, view.key);
    const auto pod_name = fmt::format("kmm-worker-{}-{}", node, name);
    for (const auto& pod : objects.pods)
        if (pod.meta.namespace_ == ns && pod.meta.name == pod_name) view.worker_pod = pod;
    for (const auto& module : objects.modules) {
        if (module.meta.namespace_ != ns || module.meta.name != name) continue;
        if (module.module_loader) view.module_version = module.module_loader->container.version;
        view.plugin_missing = module.device_plugin && !labels.contains(api::label_device_plugin_ready(ns, name));
        view.dra_missing = module.dra && !labels.contains(api::label_dra_ready(ns, name));
    }
    return view;
}

std::optional<Awaited> awaited(const OperatorView& view, const std::string& version, OperatorGoal goal) {
    if (auto gone = awaited_gone(view, version)) return gone;
    if (goal == OperatorGoal::others_gone || version.empty()) return std::nullopt;
    return awaited_loaded(view, version);
}

std::optional<Error> dead_labels(const OperatorView& view, const std::string& version) {
    const auto& then = view.row(version);
    if (then.step != plan::LabelStep::stuck) return std::nullopt;
    const auto& now = plan::label_row(view.labels);
    const bool is_now = now.step == plan::LabelStep::stuck;
    const auto& row = is_now ? now : then;
    return Error(Exit::checks_failed, "version-labels-stuck",
                 fmt::format("the version labels {} stuck as {} {}: {}", is_now ? "are" : "would be", row.name,
                             plan::to_string(row), row.text))
        .hint(fmt::format("add --repair, or: kubectl label node {} {}-", view.node.node.meta.name,
                          api::label_version_schedule(view.key, view.ns, view.name)));
}

}  // namespace kmm::drive
