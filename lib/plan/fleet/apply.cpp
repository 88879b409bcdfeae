// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/apply.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "plan/decide/order.hpp"
#include "plan/fleet/lines.hpp"

namespace kmm::plan {

namespace {

/// The node keeps or loses the module by its version label, not because it is wanted or unwanted there.
bool is_about_versions(const std::string& reason) {
    return reason.starts_with("version-") || reason == "entry-for-other-kernel";
}

/// Node, namespace and name of what NodeModulesConfigs have entries of.
using RecordedEntries = std::set<std::tuple<std::string_view, std::string_view, std::string_view>>;

using Name = std::pair<std::string, std::string>;  ///< namespace and name of a Module

RecordedEntries recorded_entries(const api::Objects& objects) {
    RecordedEntries recorded;
    for (const auto& config : objects.node_modules_configs) {
        for (const auto* list : {&config.spec, &config.status}) {
            for (const auto& entry : *list) { recorded.emplace(config.meta.name, entry.namespace_, entry.name); }
        }
    }
    return recorded;
}

void add_entry(ApplyWork& work, const Entry& entry, const RecordedEntries& recorded) {
    const bool versioned = !work.version.empty();
    switch (entry.action) {
        case Action::load:
        case Action::reload: (versioned ? work.ordered : work.load).push_back(entry.node); return;
        case Action::unload:
            (versioned && is_about_versions(entry.reason) ? work.ordered : work.unload).push_back(entry.node);
            return;
        case Action::blocked: work.blocked.push_back({entry.node, entry.reason, entry.message}); return;
        case Action::keep:
        case Action::none: break;
    }
    // Selected, and yet without the module. Taints are looked at apart where the Module has no versions, by whoever
    // knows which cordons are its own.
    const bool is_unmapped = entry.reason == "no-kernel-mapping";
    if (entry.action == Action::none && (is_unmapped || (versioned && entry.reason == "taint-not-tolerated"))) {
        (versioned ? work.kept_out : work.blocked).push_back({entry.node, entry.reason, entry.message});
    }
    // What went with a reboot needs no unloading; its entries and labels are to go all the same.
    const bool is_unwanted = entry.reason == "selector-mismatch" || entry.reason == "module-deleting";
    if (work.deleted || (is_unwanted && recorded.contains({entry.node, entry.namespace_, entry.module}))) {
        work.unload.push_back(entry.node);
    } else if (versioned && is_about_versions(entry.reason)) {
        work.ordered.push_back(entry.node);
    }
}

/// True if `node` is work of `module`, which cannot go or come anew there while something that needs it is loaded.
bool changes(const ApplyWork& module, const std::string& node) {
    const auto has = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), node) != names.end();
    };
    return has(module.load) || has(module.unload);
}

/// The removals of Modules that are to load elsewhere as well, where a Module they need goes or comes anew on the same
/// node: work of their own, which is done before. They are taken out of `by_name`.
std::vector<ApplyWork> take_early_removals(std::map<Name, ApplyWork>& by_name,
                                           const std::vector<api::Module>& modules) {
    std::vector<ApplyWork> early;
    for (const auto& module : modules) {
        auto& work = by_name.at(Name(module.meta.namespace_, module.meta.name));
        if (work.load.empty() || work.unload.empty()) { continue; }
        const auto names = needs(module);
        const bool is_in_the_way = std::any_of(by_name.begin(), by_name.end(), [&](const auto& other) {
            return std::find(names.begin(), names.end(), other.second.full_name()) != names.end() &&
                   std::any_of(work.unload.begin(), work.unload.end(),
                               [&](const std::string& node) { return changes(other.second, node); });
        });
        if (!is_in_the_way) { continue; }
        auto removal = work;
        removal.load.clear();
        removal.ordered.clear();
        removal.blocked.clear();
        removal.kept_out.clear();
        early.push_back(std::move(removal));
    }
    // Only now: one Module's removal decides about another's.
    for (const auto& removal : early) { by_name.at(Name(removal.namespace_, removal.module)).unload.clear(); }
    return early;
}

}  // namespace

std::vector<ApplyWork> apply_work(const api::Objects& objects, const Options& options) {
    std::map<Name, ApplyWork> by_name;
    for (const auto& module : objects.modules) {
        auto& work = by_name[Name(module.meta.namespace_, module.meta.name)];
        work.namespace_ = module.meta.namespace_;
        work.module = module.meta.name;
        if (module.module_loader) { work.version = module.module_loader->container.version; }
    }
    const auto recorded = recorded_entries(objects);
    static_cast<void>(visit_plan(objects, options, [&](const Line& line) {
        const Entry& entry = line.entry;
        const auto [found, unknown] = by_name.try_emplace(Name(entry.namespace_, entry.module));
        if (unknown) {
            found->second.namespace_ = entry.namespace_;
            found->second.module = entry.module;
            found->second.deleted = true;
        }
        if (entry.action != Action::keep || entry.reason != "up-to-date") {
            add_entry(found->second, line.own(), recorded);
        }
    }));
    auto all = take_early_removals(by_name, objects.modules);
    for (auto& [name, work] : by_name) { all.push_back(std::move(work)); }
    const auto ranks = load_order(objects.modules);
    std::vector<std::tuple<int, std::int64_t, ApplyWork>> ordered;
    for (auto& work : all) {
        const bool only_leaves = work.load.empty() && !work.unload.empty();
        const auto rank = ranks.find(work.full_name());
        const std::int64_t place = rank == ranks.end() ? 0 : static_cast<std::int64_t>(rank->second);
        // What a deleted Module needed is not known; whatever needs it is taken out before.
        const int group = !only_leaves ? 2 : work.deleted ? 1 : 0;
        ordered.emplace_back(group, only_leaves ? -place : place, std::move(work));
    }
    std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
        return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::vector<ApplyWork> result;
    for (auto& [group, place, work] : ordered) { result.push_back(std::move(work)); }
    return result;
}

}  // namespace kmm::plan
