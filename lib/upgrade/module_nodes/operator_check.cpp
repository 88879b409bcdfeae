// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module_nodes/operator_check.hpp"

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "plan/kmm/eligible.hpp"

namespace kmm::drive {
namespace {

std::string word_of(const std::string& version) { return version.empty() ? "unversioned" : version; }

}  // namespace

void require_operable(const api::Objects& objects, const api::Module& module, const OperatorView& view,
                      const upgrade::Options& options, const std::string& to) {
    static_cast<void>(resolve_entry(module, view.node.node.kernel_version));
    if (view.node.status && view.node.status->version.empty())
        throw Error(Exit::checks_failed, "unversioned-loaded",
                    fmt::format("the module is loaded without a version, from which KMM does not go on to {}", to))
            .hint("delete the Module and create it with its version: KMM refuses to change that in place");
    if (!options.repair)
        if (const auto dead = dead_labels(view, to)) throw *dead;
    const api::Taint cordon{std::string(api::k_taint_unschedulable), "", "NoSchedule"};
    if (options.drain && !plan::tolerates(plan::loader_tolerations(module), {cordon}))
        throw Error(
            Exit::checks_failed, "cordon-unloads",
            fmt::format("KMM unloads Module {} from a cordoned node and does not load it there", module.full_name()))
            .hint(fmt::format("let spec.tolerations of the Module tolerate {}:NoSchedule", api::k_taint_unschedulable));
    if (!awaited(view, to, OperatorGoal::loaded)) return;
    if (view.live().presence == Presence::live && first_operator_step(view, to) == "unload")
        require_unguarded(plan::unload_guard(objects, module, view.node.node.meta.name, view.node.node.boot_id));
    require_unguarded(plan::load_guard(objects, module, view.node.node.meta.name, view.node.node.boot_id));
}

std::string first_operator_step(const OperatorView& view, const std::string& to) {
    if (view.labels.module == to && !awaited(view, to, OperatorGoal::loaded)) return "validate";
    return awaited(view, to, OperatorGoal::others_gone) ? "unload" : "load";
}

upgrade::module::Node operator_record(const api::Module& module, const OperatorView& view) {
    upgrade::module::Node record;
    const auto& node = view.node.node;
    record.name = node.meta.name;
    record.kernel = node.kernel_version;
    record.boot_id = node.boot_id;
    record.architecture = node.architecture;
    const auto entry = resolve_entry(module, record.kernel);
    record.target_entry = api::encode(entry);
    record.target_image = entry.config->container_image;
    record.from_labels = encode(view.node.labels);
    if (view.node.status) {
        record.from_entry = api::encode(*view.node.status);
        record.from_version = view.node.status->version;
    }
    const auto live = view.live();
    if (live.presence == Presence::live) record.current_version = word_of(*live.said_version);
    return record;
}

std::vector<std::string> operator_actions(const OperatorView& view, const std::string& to,
                                          const upgrade::Options& options) {
    const auto first = first_operator_step(view, to);
    if (first == "validate") return {fmt::format("nothing: {} is loaded", to)};
    std::vector<std::string> actions;
    if (options.drain)
        actions.emplace_back(options.evict_users ? "cordon, evict Pods that use the module's devices"
                                                 : "cordon, evict Pods");
    if (view.labels.module != to) {
        const auto before = view.labels.module.empty() ? std::string() : fmt::format(" (now {})", view.labels.module);
        actions.push_back(fmt::format("label {}={}{}", api::label_version_module(view.ns, view.name), to, before));
    }
    if (dead_labels(view, to))
        actions.push_back(fmt::format("take label {} away", api::label_version_schedule(view.key, view.ns, view.name)));
    if (first == "unload")
        actions.push_back(
            fmt::format("wait for KMM to unload {}", view.node.status ? view.node.status->version : "what is there"));
    actions.push_back(fmt::format("wait for KMM to load {}", to));
    if (options.drain) actions.emplace_back("uncordon");
    return actions;
}

}  // namespace kmm::drive
