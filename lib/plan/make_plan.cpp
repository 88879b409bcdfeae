// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "plan/lint.hpp"
#include "plan/order.hpp"
#include "plan/policy.hpp"
#include "plan/reasons.hpp"
#include "plan/verdict.hpp"

namespace kmm::plan {

namespace {

/// Entries of a NodeModulesConfig whose Module was not read: KMM keeps what is in spec and unloads what is only in status.
void add_unknown_modules(const api::Objects& objects, Plan& plan) {
    std::set<std::pair<std::string_view, std::string_view>> known;
    for (const auto& module : objects.modules) { known.emplace(module.meta.namespace_, module.meta.name); }
    for (const auto& view : views(objects)) {
        if (view.config == nullptr) { continue; }
        std::map<std::pair<std::string, std::string>, Entry> entries;
        for (const auto* list : {&view.config->status, &view.config->spec}) {
            for (const auto& item : *list) {
                if (known.count({item.namespace_, item.name}) != 0) { continue; }
                Entry entry;
                entry.node = view.node->meta.name;
                entry.kernel = view.node->kernel_version;
                entry.boot_id = view.node->boot_id;
                entry.namespace_ = item.namespace_;
                entry.module = item.name;
                entry.version = item.version;
                entry.image = item.config.container_image;
                entry.config = item.config;
                entry.action = list == &view.config->spec ? Action::keep : Action::unload;
                entry.reason = "module-unknown";
                entry.message = reason(entry.reason).text;
                entries.insert_or_assign({item.namespace_, item.name}, std::move(entry));
            }
        }
        for (auto& [key, entry] : entries) { plan.entries.push_back(std::move(entry)); }
    }
}

/// NodeModulesConfigs that belong to no node.
void report_missing_nodes(const api::Objects& objects, Plan& plan) {
    std::set<std::string_view> nodes;
    for (const auto& node : objects.nodes) { nodes.insert(node.meta.name); }
    for (const auto& config : objects.node_modules_configs) {
        if (nodes.count(config.meta.name) != 0) { continue; }
        Diagnostic diagnostic;
        diagnostic.severity = Severity::warning;
        diagnostic.code = "node-missing";
        diagnostic.message = fmt::format("NodeModulesConfig {}: there is no Node of that name", config.meta.name);
        if (!config.meta.origin.file.empty()) { diagnostic.position = config.meta.origin; }
        diagnostic.hint = "add the Node to the input";
        plan.diagnostics.push_back(std::move(diagnostic));
    }
}

bool stays_loaded(Action action) {
    return action == Action::load || action == Action::keep || action == Action::reload;
}

/// Where the Module `full_name` names its kernel module, or where the Module stands.
std::optional<Position> place_of_kernel_module(const api::Objects& objects, const std::string& full_name) {
    for (const auto& module : objects.modules) {
        if (module.full_name() != full_name || module.meta.origin.file.empty()) { continue; }
        const auto place = module.places.find("spec.moduleLoader.container.modprobe.moduleName");
        return place == module.places.end() ? module.meta.origin : place->second;
    }
    return std::nullopt;
}

/// A kernel version that cannot be used is told once, at the first Node that has it.
void place_kernel_faults(const api::Objects& objects, Plan& plan) {
    std::map<std::string, Position> first;
    for (const auto& node : objects.nodes) {
        if (!node.meta.origin.file.empty()) { first.emplace(node.kernel_version, node.meta.origin); }
    }
    for (auto& diagnostic : plan.diagnostics) {
        if (diagnostic.code != "kernel-unparsable" || diagnostic.position) { continue; }
        for (const auto& [kernel, origin] : first) {
            if (diagnostic.message.find(fmt::format("\"{}\"", base::escape(api::trim_kernel(kernel)))) != std::string::npos) {
                diagnostic.position = origin;
                break;
            }
        }
    }
}

/// Two Modules that put the same kernel module on one node: each undoes the other's work, and KMM does not notice.
void report_conflicts(const api::Objects& objects, Plan& plan) {
    std::map<std::tuple<std::string, std::string, std::string>, std::set<std::string>> conflicts;
    std::map<std::pair<std::string, std::string>, std::string> owners;
    for (const auto& entry : plan.entries) {
        if (!stays_loaded(entry.action) || !entry.config || entry.config->modprobe.module_name.empty()) { continue; }
        std::string kernel_module = entry.config->modprobe.module_name;
        std::replace(kernel_module.begin(), kernel_module.end(), '-', '_');
        const std::string full = fmt::format("{}/{}", entry.namespace_, entry.module);
        const auto [owner, first] = owners.emplace(std::pair{entry.node, kernel_module}, full);
        if (!first) { conflicts[{kernel_module, owner->second, full}].insert(entry.node); }
    }
    for (const auto& [key, nodes] : conflicts) {
        const auto& [kernel_module, first, second] = key;
        Diagnostic diagnostic;
        diagnostic.severity = Severity::warning;
        diagnostic.code = "module-conflict";
        diagnostic.message = fmt::format("Modules {} and {} both load the kernel module {} on {} node{}, first {}", first,
                                         second, kernel_module, nodes.size(), nodes.size() == 1 ? "" : "s", *nodes.begin());
        diagnostic.hint = "let their selectors exclude each other";
        diagnostic.position = place_of_kernel_module(objects, second);
        plan.diagnostics.push_back(std::move(diagnostic));
    }
}

/// A --missing that is about no image of the plan is a typing error more often than not.
void report_unmatched_globs(const std::vector<Verdict>& verdicts, const Options& options, Plan& plan) {
    for (const auto& pattern : options.missing_images) {
        const bool used = std::any_of(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) {
            const auto* resolved = std::get_if<Resolved>(&verdict.resolution);
            return resolved != nullptr && glob_matches(pattern, resolved->config.container_image);
        });
        if (used) { continue; }
        Diagnostic diagnostic;
        diagnostic.severity = Severity::warning;
        diagnostic.code = "missing-unmatched";
        diagnostic.message = fmt::format("no image of the plan matches --missing {}", base::escape(pattern));
        diagnostic.hint = "it is compared with whole names of images; * and ? match any characters";
        plan.diagnostics.push_back(std::move(diagnostic));
    }
}

/// Ranks of the entries, and entries that are loaded although what they need is not.
void add_order(const api::Objects& objects, Plan& plan) {
    std::map<std::string, std::vector<std::string>> needed;
    for (const auto& module : objects.modules) {
        if (auto names = needs(module); !names.empty()) { needed.emplace(module.full_name(), std::move(names)); }
    }
    if (needed.empty()) { return; }
    const auto ranks = load_order(objects.modules);
    std::set<std::pair<std::string, std::string>> loaded;
    for (const auto& entry : plan.entries) {
        if (stays_loaded(entry.action)) { loaded.emplace(entry.node, entry.namespace_ + "/" + entry.module); }
    }
    std::map<std::pair<std::string, std::string>, std::set<std::string>> lacking;
    for (auto& entry : plan.entries) {
        const std::string name = entry.namespace_ + "/" + entry.module;
        if (const auto rank = ranks.find(name); rank != ranks.end()) { entry.order = rank->second; }
        const auto found = needed.find(name);
        if (found == needed.end()) { continue; }
        entry.needs = found->second;
        if (!stays_loaded(entry.action)) { continue; }
        for (const auto& other : found->second) {
            if (!loaded.contains({entry.node, other})) { lacking[{name, other}].insert(entry.node); }
        }
    }
    for (const auto& [key, nodes] : lacking) {
        Diagnostic diagnostic;
        diagnostic.severity = Severity::warning;
        diagnostic.code = "needs-not-loaded";
        diagnostic.message = fmt::format("Module {} needs {}, which is not loaded on {} node{}, first {}", key.first, key.second,
                                         nodes.size(), nodes.size() == 1 ? "" : "s", *nodes.begin());
        diagnostic.hint = fmt::format("kmm-plan why {} {}", *nodes.begin(), key.second);
        plan.diagnostics.push_back(std::move(diagnostic));
    }
}

}  // namespace

std::string_view to_string(Action action) noexcept {
    switch (action) {
        case Action::load: return "load";
        case Action::keep: return "keep";
        case Action::reload: return "reload";
        case Action::unload: return "unload";
        case Action::blocked: return "blocked";
        case Action::none: return "none";
    }
    return "none";
}

Plan make_plan(const api::Objects& objects, const Options& options) {
    Plan plan;
    auto verdicts = judge_all(objects, options);
    lint_fleet(objects, verdicts, plan.diagnostics);
    report_unmatched_globs(verdicts, options, plan);
    for (auto& verdict : verdicts) {
        const bool eligible = verdict.selected && verdict.tolerated;
        if (const auto* bad = std::get_if<MappingFault>(&verdict.resolution); bad != nullptr && eligible) {
            plan.diagnostics.push_back(bad->diagnostic);
        }
        plan.entries.push_back(std::move(verdict.entry));
    }
    add_unknown_modules(objects, plan);
    std::stable_sort(plan.entries.begin(), plan.entries.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.node, a.namespace_, a.module) < std::tie(b.node, b.namespace_, b.module);
    });
    report_missing_nodes(objects, plan);
    add_order(objects, plan);
    report_conflicts(objects, plan);
    sort_and_merge(plan.diagnostics);
    place_kernel_faults(objects, plan);
    sort_and_merge(plan.diagnostics);
    return plan;
}

}  // namespace kmm::plan
