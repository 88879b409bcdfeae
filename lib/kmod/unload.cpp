// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/steps.hpp"

namespace kmm::kmod {

namespace {

ModuleReport report_of(const std::string& name, Action action, const std::optional<LiveModule>& live) {
    ModuleReport report;
    report.name = name;
    report.action = action;
    if (live) {
        report.srcversion = live->srcversion;
        report.build_id = live->build_id;
        report.version = live->version;
        report.taint = live->taint;
    }
    return report;
}

/// Out-of-tree modules that `name` uses right now: what came with it, as far as the kernel can tell.
std::vector<std::string> used_by(const HostPaths& host, const std::string& name) {
    std::vector<std::string> result;
    for (const auto& other : live_modules(host)) {
        const auto live = live_module(host, other);
        if (!live || live->taint.find('O') == std::string::npos) continue;
        if (std::find(live->holders.begin(), live->holders.end(), name) != live->holders.end()) result.push_back(other);
    }
    return result;
}

/// Puts the firmware search path back if it is still the one that was set for this module.
void restore_firmware(const HostPaths& host, const LoadRecord& record, std::vector<std::string>& warnings) {
    try {
        for (const auto& path : remove_firmware(record.firmware)) warnings.push_back(fmt::format("firmware-kept: {} was changed since it was installed", base::escape(path)));
        if (!record.new_firmware_path || !record.old_firmware_path) return;
        if (firmware_search_path(host) == *record.new_firmware_path) (void)set_firmware_search_path(host, *record.old_firmware_path);
    } catch (const Error& error) {
        warnings.push_back(fmt::format("firmware-path: {}", error.message()));
    }
}

}  // namespace

std::string holder_chain(const HostPaths& host, const std::string& name) {
    std::string chain;
    std::set<std::string> seen{name};
    std::vector<std::string> level{name};
    while (!level.empty()) {
        std::vector<std::string> next;
        std::string names;
        for (const auto& member : level) {
            const auto live = live_module(host, member);
            if (!live) continue;
            for (const auto& holder : live->holders) {
                if (!seen.insert(holder).second) continue;
                next.push_back(holder);
                names += (names.empty() ? "" : ", ") + holder;
            }
        }
        if (!names.empty()) chain += (chain.empty() ? "" : " -> ") + names;
        level = std::move(next);
    }
    return chain;
}

Report unload_modules(const std::vector<std::string>& names, const Machine& machine) {
    Report report;
    if (names.empty()) throw bug("unload_modules without a name");
    const std::string main = normalise_name(names.front());
    const auto record = read_record(machine.host, main);
    std::vector<std::string> candidates;
    if (record) {
        candidates.assign(record->dependencies.rbegin(), record->dependencies.rend());
    } else {
        candidates = used_by(machine.host, main);
    }
    const auto own = recorded_modules(machine.host);
    ModuleReport main_report;
    std::set<std::string> done;
    for (const auto& raw : names) {
        const std::string name = normalise_name(raw);
        if (!is_module_name(name)) throw Error(Exit::data, "bad-value", fmt::format("'{}' is no module name", base::escape(raw)));
        if (!done.insert(name).second) continue;
        const auto live = live_module(machine.host, name);
        const Action action = unload_one(machine, name) ? Action::unloaded : Action::not_loaded;
        ModuleReport entry = report_of(name, action, live);
        if (name == main) {
            entry.role = Role::main;
            main_report = std::move(entry);
        } else {
            report.modules.push_back(std::move(entry));
        }
    }
    for (const auto& name : candidates) {
        if (done.contains(name) || std::find(own.begin(), own.end(), name) != own.end()) continue;
        const auto live = live_module(machine.host, name);
        if (!live || live->state != "live" || !live->holders.empty() || live->refcount.value_or(1) != 0) continue;
        if (unload_one(machine, name)) report.modules.push_back(report_of(name, Action::unloaded, live));
    }
    report.modules.push_back(std::move(main_report));
    if (record) {
        restore_firmware(machine.host, *record, report.warnings);
        if (!record->removed_in_tree.empty()) {
            report.warnings.push_back(fmt::format("in-tree-removed: {} stay unloaded; modprobe them to have them back", base::join(record->removed_in_tree, ", ")));
        }
        erase_record(machine.host, main);
    }
    return report;
}

}  // namespace kmm::kmod
