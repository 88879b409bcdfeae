// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/upgrade_view.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "base/join_some.hpp"
#include "plan/codes/reasons.hpp"
#include "plan/fleet/guard.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/resolve.hpp"

namespace kmm::plan {

namespace {

/// What is against the steps, if anything.
void guard_steps(const api::Objects& objects, const api::Module& module, const api::Node& node, const Verdict& verdict,
                 UpgradeNode& result) {
    if (!result.reason.empty() || result.steps.empty()) { return; }
    const bool unloads = std::find(result.steps.begin(), result.steps.end(), "unload") != result.steps.end();
    const auto* loaded = verdict.observed_status ? &*verdict.observed_status
                         : verdict.observed_spec ? &*verdict.observed_spec
                                                 : nullptr;
    auto guard = rename_guard(module.full_name(), module.module_loader->container.modprobe.module_name, loaded);
    if (!guard && unloads) { guard = unload_guard(objects, module, node.meta.name, node.boot_id); }
    if (!guard) { guard = load_guard(objects, module, node.meta.name, node.boot_id); }
    if (!guard) { return; }
    result.steps.clear();
    result.reason = guard->code;
    result.message = guard->message;
}

UpgradeNode upgrade_node(const Verdict& verdict) {
    UpgradeNode result;
    result.node = verdict.entry.node;
    result.kernel = verdict.entry.kernel;
    result.current = !verdict.observed_status                   ? "-"
                     : verdict.observed_status->version.empty() ? "unversioned"
                                                                : verdict.observed_status->version;
    result.message = verdict.entry.message;
    if (const auto* resolved = std::get_if<Resolved>(&verdict.resolution)) {
        result.image = resolved->config.container_image;
    }
    if (verdict.selected && !verdict.tolerated) {  // whatever else would keep or unload it there: no upgrade goes there
        const api::Taint& taint = verdict.blocking;
        const Reason& why = reason("taint-not-tolerated");
        result.reason = why.code;
        result.message = fmt::format("{}: {}{}:{}", why.text, taint.key,
                                     taint.value.empty() ? "" : "=" + taint.value, taint.effect);
        return result;
    }
    switch (verdict.entry.action) {
        case Action::load: result.steps = {"check", "load", "validate"}; break;
        case Action::reload: result.steps = {"check", "unload", "load", "validate"}; break;
        case Action::keep:
            // Another version is wanted, and the old one stays.
            if (verdict.entry.reason == "unload-policy") { result.reason = verdict.entry.reason; }
            break;
        case Action::unload:
        case Action::blocked:
        case Action::none: result.reason = verdict.entry.reason; break;
    }
    return result;
}

}  // namespace

std::vector<UpgradeNode> upgrade_nodes(const api::Objects& objects, const api::Module& module, const Options& options) {
    Options settled = options;
    settled.next = false;
    const Resolver resolver(module);
    const std::string label = api::label_version_module(module.meta.namespace_, module.meta.name);
    std::vector<UpgradeNode> result;
    for (const auto& view : views(objects)) {
        if (!selects(module.selector, view.node->meta.labels) || !api::runs_linux(*view.node)) { continue; }
        api::Node moved = *view.node;
        moved.meta.labels[label] = module.module_loader->container.version;
        NodeView imagined = view;
        imagined.node = &moved;
        const auto verdict = judge(imagined, resolver, settled);
        result.push_back(upgrade_node(verdict));
        guard_steps(objects, module, moved, verdict, result.back());
    }
    std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
    return result;
}

Error no_linux_error(const std::vector<std::string>& nodes, bool is_named) {
    constexpr std::size_t k_named_max = 5;
    return Error(Exit::checks_failed, "no-nodes",
                 fmt::format("no node is selected that runs Linux: {} {} another system",
                             base::join_some(nodes, k_named_max), nodes.size() == 1 ? "runs" : "run"))
        .hint(is_named ? "name nodes with Linux in --node"
                       : "choose nodes with Linux: --selector kubernetes.io/os=linux");
}

}  // namespace kmm::plan
