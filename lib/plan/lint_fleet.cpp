// SPDX-License-Identifier: Apache-2.0
// Traps between Modules and a fleet.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "plan/lint.hpp"

namespace kmm::plan {

namespace {

using Nodes = std::set<std::string>;

std::string first_of(const Nodes& nodes) {
    return nodes.size() == 1 ? fmt::format("node {}", *nodes.begin())
                             : fmt::format("{} nodes, first {}", nodes.size(), *nodes.begin());
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

std::string kernel_module_name(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

void report_kernels(const api::Objects& objects, const std::vector<Verdict>& verdicts, Diagnostics& diagnostics) {
    std::map<std::pair<std::string, std::string>, Nodes> unmapped;
    for (const auto& verdict : verdicts) {
        if (!verdict.selected || verdict.row == nullptr || verdict.entry.kernel.empty()) { continue; }
        if (!std::holds_alternative<NoMapping>(verdict.resolution)) { continue; }
        unmapped[{verdict.entry.namespace_ + "/" + verdict.entry.module, verdict.entry.kernel}].insert(verdict.entry.node);
    }
    for (const auto& [key, nodes] : unmapped) {
        warn(diagnostics, "kernel-unmapped",
             fmt::format("Module {}: no kernel mapping matches {}, which runs on {}", key.first, key.second, first_of(nodes)),
             "add a kernel mapping, or leave the nodes out of the selector");
    }
    std::map<std::string, Nodes> plus;
    for (const auto& node : objects.nodes) {
        if (node.kernel_version.ends_with('+')) { plus[node.kernel_version].insert(node.meta.name); }
    }
    for (const auto& [kernel, nodes] : plus) {
        if (objects.modules.empty()) { break; }
        warn(diagnostics, "kernel-plus",
             fmt::format("kernel {} on {}: KMM drops the '+' and copies lib/modules/{}, but modprobe looks for {}", kernel,
                         first_of(nodes), kernel.substr(0, kernel.size() - 1), kernel),
             "put a directory of each name into the image, or a link from one to the other");
    }
}

void report_labels(const api::Objects& objects, const std::vector<Verdict>& verdicts, Diagnostics& diagnostics) {
    std::map<std::string, const api::Node*> nodes;
    for (const auto& node : objects.nodes) { nodes.emplace(node.meta.name, &node); }
    std::map<std::string, Nodes> leftover;
    for (const auto& verdict : verdicts) {
        const Entry& entry = verdict.entry;
        if (verdict.labels_after.stuck && verdict.row != nullptr) {
            const LabelRow& row = label_row(verdict.labels_after.labels);
            warn(diagnostics, "version-labels-stuck",
                 fmt::format("node {}, Module {}/{}: the version labels are stuck as {} {}: {}", entry.node, entry.namespace_,
                             entry.module, row.name, to_string(row), row.text),
                 fmt::format("kubectl label node {} {}-", entry.node,
                             api::label_version_schedule(verdict.schedule_key, entry.namespace_, entry.module)));
        }
        const bool today = verdict.schedule_key == api::ScheduleKey::schedule_pod;
        const std::string old = api::label_version_device_plugin(entry.namespace_, entry.module);
        const auto node = nodes.find(entry.node);
        if (today && node != nodes.end() && node->second->meta.labels.contains(old)) { leftover[old].insert(entry.node); }
    }
    for (const auto& [label, where] : leftover) {
        warn(diagnostics, "label-key-leftover",
             fmt::format("label {} on {} is of KMM up to v2.6.0: this KMM ignores it, and the old DaemonSet keeps running there",
                         label, first_of(where)),
             fmt::format("kubectl label node NODE {}-, or --kmm-version v2.6.0 if that is what runs", label));
    }
}

/// KMM keeps the state of version labels by "NAMESPACE-NAME".
void report_collisions(const api::Objects& objects, Diagnostics& diagnostics) {
    std::map<std::string, const api::Module*> states;
    for (const auto& module : objects.modules) {
        if (!module.module_loader || module.module_loader->container.version.empty()) { continue; }
        const auto [other, first] = states.emplace(module.meta.namespace_ + "-" + module.meta.name, &module);
        if (first) { continue; }
        warn(diagnostics, "label-collision",
             fmt::format("Modules {} and {}: KMM mixes up their version labels", other->second->full_name(), module.full_name()),
             "rename one: namespace and name joined with '-' must differ", module.meta.origin);
    }
}

bool serves(const api::Objects& objects, const Verdict& verdict) {
    for (const auto& module : objects.modules) {
        if (module.meta.namespace_ != verdict.entry.namespace_ || module.meta.name != verdict.entry.module) { continue; }
        if (module.device_plugin || module.dra) { return true; }
    }
    for (const auto& node : objects.nodes) {
        if (node.meta.name != verdict.entry.node) { continue; }
        const auto& labels = node.meta.labels;
        return labels.contains(api::label_device_plugin_ready(verdict.entry.namespace_, verdict.entry.module)) ||
               labels.contains(api::label_dra_ready(verdict.entry.namespace_, verdict.entry.module));
    }
    return false;
}

void report_cordons(const api::Objects& objects, const std::vector<Verdict>& verdicts, Diagnostics& diagnostics) {
    std::map<std::string, Nodes> busy;
    for (const auto& verdict : verdicts) {
        const Entry& entry = verdict.entry;
        if (entry.action != Action::unload || entry.reason != "taint-not-tolerated") { continue; }
        const std::string module = entry.namespace_ + "/" + entry.module;
        if (serves(objects, verdict)) { busy[module].insert(entry.node); }
        const auto& worker = verdict.labels_after.labels.worker;
        if (verdict.observed_status && !worker.empty() && worker == verdict.observed_status->version &&
            verdict.version != worker && !verdict.version.empty()) {
            warn(diagnostics, "cordon-loses-version",
                 fmt::format("node {}, Module {}: {} is unloaded, and nothing comes back without the taint, since the label says {} "
                             "and the Module {}",
                             entry.node, module, worker, worker, verdict.version),
                 fmt::format("move the node's version label to {}, or let the Module tolerate the taint", verdict.version));
        }
    }
    for (const auto& [module, nodes] : busy) {
        warn(diagnostics, "cordon-unloads",
             fmt::format("Module {}: a taint on {} unloads a driver that serves Pods there", module, first_of(nodes)),
             "tolerate node.kubernetes.io/unschedulable, or annotate the Module with kmmtools.dev/unload-policy: on-delete");
    }
}

/// In-tree modules that one Module removes and another one loads, or needs below its own, on the same node.
void report_in_tree(const std::vector<Verdict>& verdicts, Diagnostics& diagnostics) {
    std::map<std::pair<std::string, std::string>, std::set<std::string>> users;  // node, kernel module -> Modules
    for (const auto& verdict : verdicts) {
        if (!verdict.wanted) { continue; }
        const auto& modprobe = verdict.wanted->config.modprobe;
        std::vector<std::string> names = modprobe.modules_loading_order;
        names.push_back(modprobe.module_name);
        for (const auto& name : names) {
            if (name.empty()) { continue; }
            users[{verdict.entry.node, kernel_module_name(name)}].insert(verdict.entry.namespace_ + "/" + verdict.entry.module);
        }
    }
    std::map<std::tuple<std::string, std::string, std::string>, Nodes> found;
    for (const auto& verdict : verdicts) {
        if (!verdict.wanted) { continue; }
        const std::string self = verdict.entry.namespace_ + "/" + verdict.entry.module;
        for (const auto& name : verdict.wanted->config.in_tree_modules_to_remove) {
            const auto needed = users.find({verdict.entry.node, kernel_module_name(name)});
            if (needed == users.end()) { continue; }
            for (const auto& other : needed->second) {
                if (other != self) { found[{self, name, other}].insert(verdict.entry.node); }
            }
        }
    }
    for (const auto& [key, nodes] : found) {
        const auto& [self, name, other] = key;
        warn(diagnostics, "in-tree-needed",
             fmt::format("Module {} removes the kernel module {}, which Module {} loads on {}", self, name, other, first_of(nodes)),
             "the one that loads last wins; let their selectors exclude each other");
    }
}

}  // namespace

void lint_fleet(const api::Objects& objects, const std::vector<Verdict>& verdicts, Diagnostics& diagnostics) {
    report_kernels(objects, verdicts, diagnostics);
    report_labels(objects, verdicts, diagnostics);
    report_collisions(objects, diagnostics);
    report_cordons(objects, verdicts, diagnostics);
    report_in_tree(verdicts, diagnostics);
}

}  // namespace kmm::plan
