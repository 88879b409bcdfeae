// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kernel/plan_kernel.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/linux_nodes.hpp"
#include "api/workload.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "plan/decide/order.hpp"
#include "plan/fleet/survey.hpp"
#include "plan/fleet/upgrade_view.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/find_named.hpp"
#include "upgrade/drive_kernel/control_planes.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/prepare_module/prepare.hpp"
#include "upgrade/prepare_module/prepare_parts.hpp"

namespace kmm::drive {
namespace {

constexpr std::size_t k_named = 8;  ///< nodes that an error names

std::string why_left_out(const api::Node& node) {
    if (node.unschedulable) {
        const auto owner = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
        return owner == node.meta.annotations.end() ? "cordoned" : "cordoned by " + owner->second;
    }
    return node.ready && *node.ready != "True" ? "not ready" : "";
}

/// Why no node is left to be updated. `foreign`: selected nodes without Linux.
Error no_node(const api::Objects& objects, const std::vector<upgrade::LeftOut>& left_out,
              const std::vector<std::string>& foreign, bool is_named) {
    const auto refusal = [](std::string message) {
        return Error(Exit::checks_failed, "no-nodes", std::move(message));
    };
    if (objects.nodes.empty())
        return refusal("there is no Node").hint("name the cluster with --cluster or --context");
    if (left_out.empty() && foreign.empty())
        return refusal(is_named ? "no node is selected: --selector matches none of --node"
                                : "no node is selected: --selector matches none")
            .hint("compare it with the labels of the nodes: " + where_labels_are(objects.nodes.front()));
    if (left_out.empty()) return plan::no_linux_error(foreign, is_named);
    std::vector<std::string> texts;
    for (const auto& left : left_out) texts.push_back(fmt::format("{} ({})", left.name, left.reason));
    return refusal(fmt::format("every selected node is left out: {}", base::join_some(texts, k_named)))
        .hint("name a node that is cordoned or not ready with --node");
}

Diagnostic obstacle(const api::Module& module, std::string code, std::string message, std::string hint) {
    Diagnostic finding;
    finding.code = std::move(code);
    finding.message = std::move(message);
    finding.hint = std::move(hint);
    finding.position = module.meta.origin;
    finding.exit = Exit::checks_failed;
    return finding;
}

bool is_on(const plan::Surveyed& row, const std::string& node) {
    return std::any_of(row.pools.begin(), row.pools.end(), [&](const plan::Pool& pool) {
        return std::find(pool.nodes.begin(), pool.nodes.end(), node) != pool.nodes.end();
    });
}

}  // namespace

PlannedKernel plan_kernel(const api::Objects& objects, const StartRequest& request,
                          const upgrade::kernel::Subject& subject, const sys::Clock& clock) {
    require_known_nodes(objects, request.nodes);
    PlannedKernel planned;
    auto& run = planned.run;
    run = begin_run(request, upgrade::kernel::procedure_kernel(), request.options);
    std::vector<std::string> chosen, foreign;
    for (const auto& node : objects.nodes) {
        const auto& name = node.meta.name;
        const bool is_named = std::find(request.nodes.begin(), request.nodes.end(), name) != request.nodes.end();
        if ((!request.nodes.empty() && !is_named) || !request.selector.matches(node.meta.labels)) continue;
        // It is never to be updated, so that nothing is left to do on it later.
        if (!api::runs_linux(node)) {
            planned.notes.push_back(fmt::format("node {} has no part in it: it runs no Linux", name));
            foreign.push_back(name);
            continue;
        }
        const auto why = is_named ? std::string() : why_left_out(node);
        if (why.empty()) chosen.push_back(name);
        else run.left_out.push_back({name, why});
    }
    std::sort(run.left_out.begin(), run.left_out.end(),
              [](const auto& left, const auto& right) { return left.name < right.name; });
    for (const auto& left : run.left_out)
        planned.notes.push_back(fmt::format("node {} is left out: {}", left.name, left.reason));
    if (chosen.empty()) throw no_node(objects, run.left_out, foreign, !request.nodes.empty());
    chosen = walk_order(objects, request, std::move(chosen), planned.notes);
    run.created = run.since = base::format_rfc3339(clock.now_unix());
    run.to_version = request.to_version;
    upgrade::kernel::set_subject(run, subject);
    std::set<std::string> kernels;
    for (const auto& name : chosen) {
        const auto* node = plan::find_named(objects.nodes, name);
        upgrade::NodeRecord record;
        record.name = name;
        record.since = run.since;
        record.kernel = record.from_version = record.current_version = node->kernel_version;
        record.boot_id = node->boot_id;
        record.architecture = node->architecture;
        if (is_control_plane(*node)) upgrade::kernel::set_control_plane(record.facts);
        if (request.options.order == "zone") record.zone = zone_of(objects, name);
        if (!node->kernel_version.empty()) kernels.insert(node->kernel_version);
        run.nodes.push_back(std::move(record));
    }
    run.from_version = base::join(std::vector<std::string>(kernels.begin(), kernels.end()), ",");
    return planned;
}

std::vector<std::string> kernel_actions(const upgrade::Run& run, const upgrade::NodeRecord& node,
                                        const std::vector<std::string>& modules,
                                        const std::vector<std::string>& recipe_drivers) {
    std::vector<std::string> actions;
    const bool is_there = node.kernel == run.to_version;
    if (is_there) actions.push_back(fmt::format("runs {} already", run.to_version));
    if (!is_there && run.options.drain) actions.emplace_back("cordon, evict Pods");
    if (!is_there && upgrade::kernel::is_control_plane(node))
        actions.emplace_back("wait until the other control planes are Ready");
    if (!is_there) {
        actions.push_back("install: " + upgrade::kernel::subject_of(run).command);
        actions.push_back(fmt::format("reboot, wait for a new boot of {}", run.to_version));
    }
    const bool is_operated = upgrade::kernel::subject_of(run).loader == upgrade::kernel::Loader::operator_;
    for (const auto& module : modules)
        actions.push_back(fmt::format("{} {}, compare the live module with its file",
                                      is_operated ? "wait for KMM to load" : "load", module));
    for (const auto& driver : recipe_drivers)
        actions.push_back(fmt::format("wait for the Pod of the recipe's driver {}, if there is one now", driver));
    if (!is_there && run.options.drain) actions.emplace_back("uncordon");
    return actions;
}

std::vector<std::string> modules_on(const api::Objects& objects, const std::string& kernel, const std::string& node) {
    const auto order = plan::load_order(objects.modules);
    std::vector<std::string> names;
    for (const auto& row : plan::survey(objects, {kernel}))
        if (is_on(row, node)) names.push_back(row.module->full_name());
    std::stable_sort(names.begin(), names.end(), [&](const std::string& left, const std::string& right) {
        return order.at(left) < order.at(right);
    });
    return names;
}

Diagnostics kernel_obstacles(const api::Objects& objects, const upgrade::Run& run) {
    Diagnostics findings;
    const bool is_operated = upgrade::kernel::subject_of(run).loader == upgrade::kernel::Loader::operator_;
    for (const auto& node : run.nodes) {
        if (node.kernel == run.to_version) continue;
        const auto problem = quorum_problem(objects.nodes, node.name, {});
        if (problem.empty()) continue;
        Diagnostic finding;
        finding.code = "control-plane-unavailable";
        finding.message = fmt::format("control plane {} cannot be rebooted: {}", node.name, problem);
        finding.hint = "bring the others back: kubectl get nodes; kubectl get pods -n kube-system";
        finding.position = plan::find_named(objects.nodes, node.name)->meta.origin;
        finding.exit = Exit::checks_failed;
        findings.push_back(std::move(finding));
    }
    const api::Taint cordon{std::string(api::k_taint_unschedulable), "", "NoSchedule"};
    for (const auto& row : plan::survey(objects, {run.to_version})) {
        const auto& module = *row.module;
        const auto& version = module.module_loader->container.version;
        std::vector<std::string> waiting;
        bool is_needed = false;
        for (const auto& node : run.nodes) {
            if (!is_on(row, node.name)) continue;
            is_needed = true;
            const auto* object = plan::find_named(objects.nodes, node.name);
            const auto label = module_labels_of(*object, module.meta.namespace_, module.meta.name).module;
            if (label && *label != version) waiting.push_back(fmt::format("{} ({})", node.name, base::escape(*label)));
        }
        if (!waiting.empty()) {
            const auto label = api::label_version_module(module.meta.namespace_, module.meta.name);
            findings.push_back(
                obstacle(module, "version-mismatch",
                         fmt::format("Module {} is at version {}, and nodes are to run another one: {}",
                                     module.full_name(), version.empty() ? "none" : version, base::join(waiting, ", ")),
                         version.empty()
                             ? fmt::format("give the Module that version again, or remove label {} of these nodes",
                                           label)
                             : fmt::format("finish that upgrade first: kmm-upgrade start module {} --to {}",
                                           module.full_name(), version)));
        }
        if (is_operated && is_needed && run.options.drain &&
            !plan::tolerates(plan::loader_tolerations(module), {cordon}))
            findings.push_back(obstacle(
                module, "cordon-unloads",
                fmt::format("KMM does not load Module {} on a cordoned node", module.full_name()),
                fmt::format("let spec.tolerations of the Module tolerate {}:NoSchedule", api::k_taint_unschedulable)));
    }
    return findings;
}

}  // namespace kmm::drive
