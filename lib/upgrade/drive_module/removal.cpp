// SPDX-License-Identifier: Apache-2.0
// Nodes that lose a module for good, since its Module was deleted or does not want them any more.
#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/resolve.hpp"
#include "upgrade/drive_module/worker_way.hpp"

namespace kmm::drive {
namespace {

/// The first taint that the Module does not tolerate, as KEY:EFFECT. Kubernetes' own come and go: a cordon, which may
/// be ours, a node that is not ready.
std::string refusing_taint(const api::Module& module, const api::Node& node) {
    api::Taint blocking;
    return plan::tolerates(plan::loader_tolerations(module), plan::lasting_taints(node.taints), &blocking)
               ? ""
               : fmt::format("{}:{}", blocking.key, blocking.effect);
}

}  // namespace

void WorkerWay::require_goal(const std::string& name) {
    const auto& run = tools_.run();
    const auto module = tools_.fleet.find_module();
    const auto node = tools_.fleet.view(name).node;
    if (!upgrade::module::is_apply(run)) {
        if (module && !plan::selects(module->selector, node.meta.labels))
            throw Error(Exit::checks_failed, "node-not-eligible",
                        fmt::format("the selector of Module {} does not match the node's labels any more",
                                    tools_.subject.full_name()))
                .hint(fmt::format("give the node its labels back and retry it, or: kmm-upgrade skip {} --reason TEXT",
                                  name));
        if (const auto taint = module ? refusing_taint(*module, node) : ""; !taint.empty())
            throw Error(
                Exit::checks_failed, "node-not-eligible",
                fmt::format("Module {} does not tolerate the node's taint {}", tools_.subject.full_name(), taint))
                .hint(fmt::format("take the taint away and retry it, or: kmm-upgrade skip {} --reason TEXT", name));
        return;
    }
    const bool is_selected =
        module && module->module_loader && !module->meta.deleting && plan::selects(module->selector, node.meta.labels);
    const auto refuse = [&](const std::string& text) {
        throw Error(Exit::checks_failed, "goal-changed", fmt::format("node {}: {}", name, text))
            .hint("kmm-upgrade abort, then kmm-upgrade apply " + tools_.subject.full_name());
    };
    if (tools_.node(name).goal != upgrade::module::k_goal_absent) {
        if (!is_selected || !refusing_taint(*module, node).empty())
            refuse(fmt::format("Module {} does not want the node any more", tools_.subject.full_name()));
    } else if (is_selected && plan::tolerates(plan::loader_tolerations(*module), node.taints) &&
               std::holds_alternative<plan::Resolved>(plan::resolve(*module, node.kernel_version))) {
        // A cordon of this run is a taint as well: it never makes a node wanted.
        refuse(fmt::format("Module {} wants the node again", tools_.subject.full_name()));
    }
}

Facts WorkerWay::check_removal(const std::string& name, const Look& seen) {
    const auto& run = tools_.run();
    const auto node = tools_.node(name);
    const auto view = tools_.fleet.view(name);
    const bool is_live = seen.module.presence == Presence::live;
    const bool is_recorded = view.status || view.spec || !node.target_entry.is_null();
    if (is_live && !is_recorded)
        throw Error(
            Exit::checks_failed, "module-unmanaged",
            fmt::format("node {}: {} is live, but the cluster says nothing of it", name, tools_.subject.kernel_module))
            .hint("unload it on the node");
    if (is_live) tools_.fleet.require_unloadable(name, seen.facts.boot_id);
    const bool in_place =
        !is_live && !view.status && !view.spec && view.labels == ModuleLabels() && !view.ready && !view.version_ready;
    auto facts = value::Node::mapping();
    facts.set("next", in_place ? "validate" : "unload");
    facts.set("kernel", seen.facts.kernel);
    facts.set("bootID", seen.facts.boot_id);
    facts.set("architecture", seen.facts.architecture);
    if (view.status || view.spec) facts.set("targetEntry", api::encode(view.status ? *view.status : *view.spec));
    facts.set("live", upgrade::module::encode(seen.module.identity));
    facts.set("currentVersion", version_of(run, node, seen.module));
    facts.set("currentKnown", true);
    facts.set("message",
              is_live ? fmt::format("{} {} is not wanted", tools_.subject.kernel_module, seen.module.identity.brief())
                      : fmt::format("{} is not live", tools_.subject.kernel_module));
    return facts;
}

Facts WorkerWay::validate_removal(const std::string& name, const Look& seen) {
    const auto kernel_module = tools_.subject.kernel_module;
    if (seen.module.presence != Presence::absent)
        throw Error(Exit::unhealthy, "module-still-live", fmt::format("{} is live again", kernel_module))
            .hint("something on the node loads it: look for a udev rule or a unit");
    const auto view = tools_.fleet.view(name);
    if (view.spec || view.status)
        throw Error(Exit::unhealthy, "entry-still-there", "the node's NodeModulesConfig names the Module again")
            .hint("find out who writes it: an operator manages the same Module");
    auto facts = value::Node::mapping();
    facts.set("currentVersion", "");
    facts.set("currentKnown", true);
    facts.set("live", value::Node::mapping());
    facts.set("message", "unloaded " + kernel_module);
    return facts;
}

}  // namespace kmm::drive
