// SPDX-License-Identifier: Apache-2.0
// Traps between Modules and a fleet.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "base/join_some.hpp"
#include "base/module_name.hpp"
#include "base/text.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

using Nodes = FleetLint::Nodes;

std::string first_of(const Nodes& nodes) {
    return nodes.count == 1 ? fmt::format("node {}", nodes.first)
                            : fmt::format("{} nodes, first {}", nodes.count, nodes.first);
}

/// Once a node, however often it is called for it.
void count(Nodes& nodes, const api::Node& node) {
    if (nodes.last == &node) { return; }
    nodes.last = &node;
    if (nodes.count == 0 || node.meta.name < nodes.first) {
        nodes.first = node.meta.name;
        nodes.place = node.meta.origin;
    }
    ++nodes.count;
}

void warn(Diagnostics& diagnostics, std::string code, std::string message, std::string hint,
          const Position& place = Position{}) {
    Diagnostic diagnostic;
    diagnostic.severity = Severity::warning;
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    diagnostic.hint = std::move(hint);
    if (!place.file.empty()) { diagnostic.position = place; }
    diagnostics.push_back(std::move(diagnostic));
}

/// What no mapping matches, by Module and kernel; many kernels of one Module together.
void report_unmapped(const std::map<std::pair<std::string, std::string>, Nodes>& unmapped, Diagnostics& diagnostics) {
    constexpr std::size_t k_apart = 3;  // kernels of one Module
    constexpr std::size_t k_named = 8;
    for (auto at = unmapped.begin(); at != unmapped.end();) {
        const std::string& module = at->first.first;
        const auto end =
            std::find_if(at, unmapped.end(), [&](const auto& other) { return other.first.first != module; });
        const bool is_many = std::distance(at, end) > static_cast<std::ptrdiff_t>(k_apart);
        std::vector<std::string> kernels;
        Nodes all;
        for (; at != end; ++at) {
            const Nodes& nodes = at->second;
            if (!is_many || all.count == 0 || nodes.first < all.first) {
                all.first = nodes.first;
                all.place = nodes.place;
            }
            all.count = is_many ? all.count + nodes.count : nodes.count;
            kernels.push_back(at->first.second);
            if (is_many && std::next(at) != end) { continue; }
            warn(diagnostics, "kernel-unmapped",
                 fmt::format("Module {}: no kernel mapping matches {}, which {} on {}", module,
                             base::join_some(kernels, k_named), is_many ? "run" : "runs", first_of(all)),
                 "add a kernel mapping, or leave the nodes out of the selector", all.place);
            kernels.clear();
        }
    }
}

/// Where a Module stands that is named "NAMESPACE/NAME", without a file if it was not read.
Position place_of_module(const api::Objects& objects, const std::string& full_name) {
    const auto& modules = objects.modules;
    const auto found = std::find_if(modules.begin(), modules.end(),
                                    [&](const api::Module& module) { return module.full_name() == full_name; });
    return found == modules.end() ? Position{} : found->meta.origin;
}

/// KMM keeps the state of version labels by "NAMESPACE-NAME".
void report_collisions(const api::Objects& objects, Diagnostics& diagnostics) {
    std::map<std::string, const api::Module*> states;
    for (const auto& module : objects.modules) {
        if (!module.module_loader || module.module_loader->container.version.empty()) { continue; }
        const auto [other, first] = states.emplace(module.meta.namespace_ + "-" + module.meta.name, &module);
        if (first) { continue; }
        warn(diagnostics, "label-collision",
             fmt::format("Modules {} and {}: KMM mixes up their version labels", other->second->full_name(),
                         module.full_name()),
             "rename one: namespace and name joined with '-' must differ", module.meta.origin);
    }
}

}  // namespace

FleetLint::Share FleetLint::see(const api::Node& node, const Verdict& verdict) {
    const Entry& entry = verdict.entry;
    see_labels(node, verdict);
    see_cordon(node, verdict);
    Share share;
    share.module = entry.namespace_ + "/" + entry.module;
    if (verdict.wanted) {
        const auto& config = *verdict.wanted->config;
        share.is_wanted = true;
        share.removed = config.in_tree_modules_to_remove;
        share.removes = !share.removed.empty();
        share.orders = !config.modprobe.modules_loading_order.empty();
        for (const auto& name : config.modprobe.modules_loading_order) {
            if (!name.empty()) { share.kernel_modules.push_back(base::kernel_module_name(name)); }
        }
        if (const auto& name = config.modprobe.module_name; !name.empty()) {
            share.kernel_modules.push_back(base::kernel_module_name(name));
        }
    }
    const bool no_mapping = std::holds_alternative<NoMapping>(verdict.resolution);
    if (verdict.selected && verdict.row != nullptr && !entry.kernel.empty() && no_mapping) {
        share.unmapped = &unmapped_[{share.module, entry.kernel}];
    }
    // A cordon ends, and what a Module does not tolerate otherwise keeps it away.
    const bool stays_away = !verdict.tolerated && verdict.blocking.key != api::k_taint_unschedulable;
    if (verdict.selected && !stays_away && node.kernel_version.ends_with('+') &&
        entry.reason != "module-deleting" && std::holds_alternative<Resolved>(verdict.resolution)) {
        share.plus = &plus_[node.kernel_version];
    }
    if (verdict.schedule_key == api::ScheduleKey::schedule_pod) {
        const std::string old = api::label_version_device_plugin(entry.namespace_, entry.module);
        if (node.meta.labels.contains(old)) { share.leftover = &leftover_[old]; }
    }
    return share;
}

void FleetLint::add(const api::Node& node, const Share& share) {
    if (share.unmapped != nullptr) { count(*share.unmapped, node); }
    if (share.leftover != nullptr) { count(*share.leftover, node); }
    if (share.plus != nullptr) { count(*share.plus, node); }
    if (!share.is_wanted) { return; }
    wanted_.push_back(&share);
    removes_ = removes_ || share.removes;
    orders_ = orders_ || share.orders;
}

void FleetLint::end_node(const api::Node& node) {
    if (removes_) { see_removed(node); }
    if (orders_ && wanted_.size() > 1) { see_ordered(node); }
    if (!wanted_.empty() && !api::runs_linux(node)) {
        const std::string& system = node.meta.labels.at(std::string(api::k_label_os));
        for (const auto* share : wanted_) { count(other_system_[{share->module, system}], node); }
    }
    wanted_.clear();
    removes_ = false;
    orders_ = false;
}

/// In-tree modules that one Module removes and another one loads, or needs below its own, on the same node.
void FleetLint::see_removed(const api::Node& node) {
    std::map<std::string, std::set<std::string>> users;  // kernel module -> Modules
    for (const auto* share : wanted_) {
        for (const auto& name : share->kernel_modules) { users[name].insert(share->module); }
    }
    for (const auto* share : wanted_) {
        for (const auto& name : share->removed) {
            const auto needed = users.find(base::kernel_module_name(name));
            if (needed == users.end()) { continue; }
            for (const auto& other : needed->second) {
                if (other != share->module) { count(removed_[{share->module, name, other}], node); }
            }
        }
    }
}

/// Kernel modules of a loading order that another Module loads too. Two that both name one as their main module are
/// found with the lines of the plan.
void FleetLint::see_ordered(const api::Node& node) {
    std::map<std::string, const Share*> owners;
    std::set<std::string> main_of_owner;
    for (const auto* share : wanted_) {
        for (const auto& name : share->kernel_modules) {
            const bool is_main = name == share->kernel_modules.back();
            const auto [owner, fresh] = owners.emplace(name, share);
            if (fresh && is_main) { main_of_owner.insert(name); }
            if (owner->second == share || (is_main && main_of_owner.contains(name))) { continue; }
            count(ordered_[{name, owner->second->module, share->module}], node);
        }
    }
}

void FleetLint::see_labels(const api::Node& node, const Verdict& verdict) {
    const Entry& entry = verdict.entry;
    if (verdict.labels_after.stuck && verdict.row != nullptr) {
        const LabelRow& row = label_row(verdict.labels_after.labels);
        warn(stuck_, "version-labels-stuck",
             fmt::format("node {}, Module {}/{}: the version labels are stuck as {} {}: {}", entry.node,
                         entry.namespace_, entry.module, row.name, to_string(row), row.text),
             fmt::format("kubectl label node {} {}-", entry.node,
                         api::label_version_schedule(verdict.schedule_key, entry.namespace_, entry.module)),
             node.meta.origin);
    }
}

bool FleetLint::serves(const api::Node& node, const Entry& entry) const {
    for (const auto& module : objects_.modules) {
        if (module.meta.namespace_ != entry.namespace_ || module.meta.name != entry.module) { continue; }
        if (module.device_plugin || module.dra) { return true; }
    }
    return node.meta.labels.contains(api::label_device_plugin_ready(entry.namespace_, entry.module)) ||
           node.meta.labels.contains(api::label_dra_ready(entry.namespace_, entry.module));
}

void FleetLint::see_cordon(const api::Node& node, const Verdict& verdict) {
    const Entry& entry = verdict.entry;
    if (entry.action != Action::unload || entry.reason != "taint-not-tolerated") { return; }
    const std::string module = entry.namespace_ + "/" + entry.module;
    if (serves(node, entry)) { count(busy_[module], node); }
    const auto& worker = verdict.labels_after.labels.worker;
    if (verdict.observed_status && !worker.empty() && worker == verdict.observed_status->version &&
        verdict.version != worker && !verdict.version.empty()) {
        warn(
            loses_version_, "cordon-loses-version",
            fmt::format(
                "node {}, Module {}: {} is unloaded, and nothing comes back without the taint, since the label says "
                "{} and the Module {}",
                entry.node, module, worker, worker, verdict.version),
            fmt::format("move the node's version label to {}, or let the Module tolerate the taint", verdict.version),
            node.meta.origin);
    }
}

void FleetLint::report(Diagnostics& diagnostics) const {
    report_unmapped(unmapped_, diagnostics);
    for (const auto& [kernel, nodes] : plus_) {
        warn(diagnostics, "kernel-plus",
             fmt::format("kernel {} on {}: KMM drops the '+' and copies lib/modules/{}, but modprobe looks for {}",
                         kernel, first_of(nodes), kernel.substr(0, kernel.size() - 1), kernel),
             "put a directory of each name into the image, or a link from one to the other", nodes.place);
    }
    diagnostics.insert(diagnostics.end(), stuck_.begin(), stuck_.end());
    for (const auto& [label, where] : leftover_) {
        warn(
            diagnostics, "label-key-leftover",
            fmt::format(
                "label {} on {} is of KMM up to v2.6.0: this KMM ignores it, and the old DaemonSet keeps running there",
                label, first_of(where)),
            "kmm-upgrade migrate renames it; kmm-plan --kmm-version v2.6.0 if that is what runs", where.place);
    }
    report_collisions(objects_, diagnostics);
    diagnostics.insert(diagnostics.end(), loses_version_.begin(), loses_version_.end());
    for (const auto& [module, nodes] : busy_) {
        warn(diagnostics, "cordon-unloads",
             fmt::format("Module {}: a taint on {} unloads a driver that serves Pods there", module, first_of(nodes)),
             "tolerate node.kubernetes.io/unschedulable, or annotate the Module with kmmtools.dev/unload-policy: "
             "on-delete",
             nodes.place);
    }
    for (const auto& [key, nodes] : removed_) {
        const auto& [self, name, other] = key;
        warn(diagnostics, "in-tree-needed",
             fmt::format("Module {} removes the kernel module {}, which Module {} loads on {}", self, name, other,
                         first_of(nodes)),
             "the one that loads last wins; let their selectors exclude each other", place_of_module(objects_, self));
    }
    for (const auto& [key, nodes] : ordered_) {
        const auto& [name, first, second] = key;
        warn(diagnostics, "module-conflict",
             fmt::format("Modules {} and {} both load the kernel module {} on {}, one of them by modulesLoadingOrder",
                         first, second, name, first_of(nodes)),
             "let their selectors exclude each other", place_of_module(objects_, second));
    }
    for (const auto& [key, nodes] : other_system_) {
        const auto& [module, system] = key;
        warn(diagnostics, "node-not-linux",
             fmt::format("Module {} selects {} with the operating system {}, where no worker Pod can run", module,
                         first_of(nodes), base::escape(system)),
             fmt::format("add {}: linux to spec.selector", api::k_label_os), nodes.place);
    }
}

}  // namespace kmm::plan
