// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "kmod/load/steps.hpp"
#include "kmod/load/users.hpp"

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
        if (!live || !is_out_of_tree(*live)) continue;
        if (std::find(live->holders.begin(), live->holders.end(), name) != live->holders.end()) result.push_back(other);
    }
    return result;
}

/// Gives up the firmware of `main` in `directories`, then the search path that was set for it.
void restore_firmware(const HostPaths& host, const std::string& main, const std::optional<LoadRecord>& record,
                      const std::vector<std::string>& directories, std::vector<std::string>& warnings) {
    try {
        for (const auto& directory : directories) {
            for (const auto& path : remove_firmware(firmware_of_host(host, directory), main))
                warnings.push_back(
                    fmt::format("firmware-kept: {} was changed since it was installed", base::escape(path)));
        }
    } catch (const Error& error) {
        const char* between = error.hint().empty() ? "" : "; ";
        warnings.push_back(fmt::format("firmware-kept: {}{}{}", message_in_context(error), between, error.hint()));
    }
    try {
        if (record) give_up_search_path(host, *record);
    } catch (const Error& error) {
        warnings.push_back(fmt::format("firmware-path: {}", message_in_context(error)));
    }
}

/// Where firmware of a module may be: as its record says, `otherwise` without one.
std::vector<std::string> firmware_places(const std::optional<LoadRecord>& record, const std::string& otherwise) {
    const bool known = record && !record->unloaded;
    std::vector<std::string> places = known ? record->former_firmware_directories : std::vector<std::string>{};
    places.push_back(known ? record->firmware_directory : otherwise);
    std::erase(places, "");
    return places;
}

/// Brings in-tree modules back where that is requested, and notes which are still to come back: for a later unload, or
/// the next load. What came with it and stays, as others use it, is noted, too.
void settle_record(const UnloadRequest& request, const LoadRecord& record, const Machine& machine, Report& report) {
    std::vector<std::string> missing = record.removed_in_tree;
    std::erase_if(missing, [&](const std::string& name) { return live_module(machine.host, name).has_value(); });
    if (request.in_tree == InTree::restore) {
        const std::vector<std::string> wanted(missing.rbegin(), missing.rend());
        for (const auto& name : wanted) {
            const std::size_t before = report.modules.size();
            if (auto fault = load_from_host(machine, name, Action::restored, report)) {
                report.warnings.push_back("not-restored: " + *fault);
                report.not_restored.push_back({name, std::move(*fault)});
                continue;
            }
            std::erase(missing, name);
            if (report.modules.size() == before)
                report.modules.push_back(report_of(name, Action::restored, live_module(machine.host, name)));
        }
    } else if (!missing.empty()) {
        report.warnings.push_back(
            fmt::format("in-tree-removed: {} stay unloaded; --restore-in-tree or modprobe bring them back",
                        base::join(missing, ", ")));
    }
    const auto wanted = wanted_on_record(machine.host, {record.module});
    std::vector<std::string> left = record.dependencies;
    std::erase_if(left,
                  [&](const std::string& name) { return wanted.contains(name) || !live_module(machine.host, name); });
    note_unloaded(machine.host, record.module, std::move(missing), std::move(left));
}

/// Unloads a dependency that nobody seems to use. One that stays after all is told, and no failure of what was asked
/// for.
bool unload_dependency(const Machine& machine, const std::string& name, std::vector<std::string>& warnings) {
    Machine at_once = machine;
    at_once.patience.busy = std::chrono::milliseconds(0);
    try {
        return unload_one(at_once, name);
    } catch (const Error& error) {
        if (error.exit() != Exit::busy && error.exit() != Exit::refused) throw;
        warnings.push_back(fmt::format("dependency-kept: {}", error.message()));
        return false;
    }
}

/// Unloads those of `names` that nobody uses any more, and what becomes free by that.
void unload_unused(const Machine& machine, std::vector<std::string> names, Report& report) {
    for (bool any = true; any;) {
        any = false;
        for (const auto& name : std::exchange(names, {})) {
            const auto live = live_module(machine.host, name);
            if (!live) continue;
            if (live->state != "live" || !live->holders.empty() || live->refcount.value_or(1) != 0) {
                names.push_back(name);
                continue;
            }
            if (!unload_dependency(machine, name, report.warnings)) continue;
            report.modules.push_back(report_of(name, Action::unloaded, live));
            any = true;
        }
    }
}

/// Modules that use `name`, the outermost first, then `name`.
void holders_first(const HostPaths& host, const std::string& name, std::vector<std::string>& order) {
    if (std::find(order.begin(), order.end(), name) != order.end()) return;
    if (const auto live = live_module(host, name)) {
        for (const auto& holder : live->holders) holders_first(host, holder, order);
    }
    order.push_back(name);
}

/// In use by something else than the modules of `order`. Each holder is one of the reference count.
bool is_busy(const HostPaths& host, const std::string& name, const std::vector<std::string>& order) {
    const auto live = live_module(host, name);
    if (!live) return false;
    const bool by_others = std::any_of(live->holders.begin(), live->holders.end(), [&](const std::string& h) {
        return std::find(order.begin(), order.end(), h) == order.end();
    });
    return by_others || live->refcount.value_or(0) > static_cast<long>(live->holders.size());
}

/// The request's names, normalised, once each, with their holders in front where that is wanted.
std::vector<std::string> unload_order(const UnloadRequest& request, const HostPaths& host) {
    std::vector<std::string> order;
    for (const auto& raw : request.names) {
        const std::string name = normalise_name(raw);
        if (!is_module_name(name))
            throw Error(Exit::data, "bad-value", fmt::format("'{}' is not a module name", base::escape(raw)));
        if (request.holders_too) {
            holders_first(host, name, order);
        } else if (std::find(order.begin(), order.end(), name) == order.end()) {
            order.push_back(name);
        }
    }
    return order;
}

/// The report of a policy that leaves everything as it is.
Report keep_all(const std::vector<std::string>& order, const std::string& main, const std::string& warning,
                const HostPaths& host) {
    Report report;
    for (const auto& name : order) {
        const auto live = live_module(host, name);
        report.modules.push_back(report_of(name, live ? Action::kept : Action::not_loaded, live));
        if (name == main) report.modules.back().role = Role::main;
    }
    const bool any = std::any_of(report.modules.begin(), report.modules.end(),
                                 [](const ModuleReport& module) { return module.action == Action::kept; });
    if (any) report.warnings.push_back(warning);
    return report;
}

}  // namespace

std::optional<ModuleReport> unload_leftover(const Machine& machine, const std::string& name) {
    const auto left = leftovers(machine.host);
    const auto live = live_module(machine.host, name);
    if (std::find(left.begin(), left.end(), name) == left.end() || !live || !live->holders.empty() ||
        live->refcount.value_or(1) != 0)
        return std::nullopt;
    return unload_one(machine, name) ? std::optional(report_of(name, Action::unloaded, live)) : std::nullopt;
}

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

namespace {

/// The report that everything stays, with the reason, where the policy says so for what is the case; nullopt if it is
/// to be unloaded. Errors: a module that has no exit function, where it is to go all the same.
std::optional<Report> kept_by_policy(const UnloadRequest& request, const std::vector<std::string>& order,
                                     const std::string& main, const Machine& machine) {
    if (request.policy == UnloadPolicy::never) {
        return keep_all(
            order, main,
            fmt::format("kept: module {} stays loaded, as the policy never says; it is gone after the next reboot",
                        main),
            machine.host);
    }
    const auto permanent = std::find_if(order.begin(), order.end(),
                                        [&](const std::string& name) { return is_permanent(machine.host, name); });
    if (permanent != order.end() && request.policy == UnloadPolicy::if_idle) {
        return keep_all(order, main,
                        fmt::format("kept: module {} has no exit function and stays until the node is rebooted; "
                                    "nothing was changed, as the policy if-idle says",
                                    *permanent),
                        machine.host);
    }
    if (permanent != order.end() && !request.force.removal) throw permanent_error(*permanent);
    if (request.policy == UnloadPolicy::if_idle) {
        const auto busy = std::find_if(order.begin(), order.end(),
                                       [&](const std::string& name) { return is_busy(machine.host, name, order); });
        if (busy != order.end()) {
            return keep_all(order, main,
                            fmt::format("kept: {}; nothing was changed, as the policy if-idle says",
                                        busy_error(machine, *busy).message()),
                            machine.host);
        }
        for (const auto& name : order) {
            const auto up = interfaces_up(machine.host, name);
            if (up.empty()) continue;
            return keep_all(order, main,
                            fmt::format("kept: module {} drives a network interface that is up: {}; nothing was "
                                        "changed, as the policy if-idle says",
                                        name, base::escape(base::join(up, ", "))),
                            machine.host);
        }
    }
    return std::nullopt;
}

/// Errors: io "damaged-record" where what a record says is needed.
void warn_of_damaged_records(const UnloadRequest& request, const std::vector<std::string>& order, const HostPaths& host,
                             std::vector<std::string>& warnings) {
    for (const auto& name : order) {
        const std::string damaged = damaged_record(host, name);
        if (damaged.empty()) continue;
        const std::string told =
            fmt::format("{} is damaged: what was changed for module {} is not known", base::escape(damaged), name);
        if (request.in_tree == InTree::restore) {
            throw Error(Exit::io, "damaged-record", told)
                .hint(
                    "unload without --restore-in-tree, bring in-tree modules back with modprobe, and remove that file");
        }
        warnings.push_back(fmt::format("damaged-record: {}; in-tree modules that gave way stay unloaded", told));
    }
}

/// Commands of modprobe.d that would take the place of unloading are never run: that they exist is said.
void warn_of_remove_commands(const UnloadRequest& request, const std::vector<std::string>& order, const HostPaths& host,
                             std::vector<std::string>& warnings) {
    const ModprobeConfig config = read_modprobe_config(host, request.image_config);
    for (const auto& name : order) {
        const HostCommand* command = command_for(config.remove, name);
        if (command == nullptr || !live_module(host, name)) continue;
        warnings.push_back(fmt::format(
            "remove-command: {} wants '{}' to be run instead of unloading module {}; commands are never run",
            base::escape(command->where), base::escape(command->text), name));
    }
}

/// What came with the modules in `order`, as records say, or else the kernel.
std::vector<std::string> came_with(const std::string& main, const std::optional<LoadRecord>& record,
                                   const std::vector<std::string>& order, const HostPaths& host) {
    std::vector<std::string> candidates;
    const bool ours = record && !record->unloaded;  // loaded by this tool, as far as it knows
    if (ours) candidates.assign(record->dependencies.rbegin(), record->dependencies.rend());
    else candidates = used_by(host, main);
    for (const auto& name : order) {  // one that was loaded on its own
        const auto other = name == main ? std::nullopt : read_record(host, name);
        if (other && !other->unloaded)
            candidates.insert(candidates.end(), other->dependencies.rbegin(), other->dependencies.rend());
    }
    return candidates;
}

/// Unloads each; the names of those that were live. Reports of all but the main one go to `report`. An error says what
/// had gone before.
std::vector<std::string> unload_each(const UnloadRequest& request, const std::vector<std::string>& order,
                                     const std::string& main, const Machine& machine, ModuleReport& main_report,
                                     Report& report) {
    std::vector<std::string> gone;
    const auto unload_next = [&](const std::string& name) {
        try {
            return unload_one(machine, name, request.force);
        } catch (Error& error) {
            if (!gone.empty()) error.detail("unloaded", base::join(gone, ", "));
            throw;
        }
    };
    for (const auto& name : order) {
        const auto live = live_module(machine.host, name);
        const auto start = machine.clock.monotonic();
        const Action action = unload_next(name) ? Action::unloaded : Action::not_loaded;
        if (action == Action::unloaded) gone.push_back(name);
        ModuleReport entry = report_of(name, action, live);
        entry.took = machine.clock.monotonic() - start;
        if (name == main) {
            entry.role = Role::main;
            main_report = std::move(entry);
        } else {
            report.modules.push_back(std::move(entry));
        }
    }
    return gone;
}

void unload_into(Report& report, const UnloadRequest& request, const Machine& machine) {
    if (request.names.empty()) throw bug("unload_modules without a name");
    const std::string main = normalise_name(request.names.front());
    const auto order = unload_order(request, machine.host);
    if (auto kept = kept_by_policy(request, order, main, machine)) {
        report = std::move(*kept);
        return;
    }
    warn_of_damaged_records(request, order, machine.host, report.warnings);
    const auto record = read_record(machine.host, main);
    auto candidates = came_with(main, record, order, machine.host);
    const std::uint64_t taint_before = taint_bits(machine.host);
    warn_of_remove_commands(request, order, machine.host, report.warnings);
    if (request.force.any())
        report.warnings.push_back(fmt::format("forced: module {} is unloaded by force, as confirmed", main));
    ModuleReport main_report;
    const auto gone = unload_each(request, order, main, machine, main_report, report);
    for (auto& name : leftovers(machine.host)) {  // of modules that went before, while others used them
        if (std::find(candidates.begin(), candidates.end(), name) == candidates.end())
            candidates.push_back(std::move(name));
    }
    const auto wanted = wanted_on_record(machine.host, order);
    std::erase_if(candidates, [&](const std::string& name) {
        return wanted.contains(name) || std::find(order.begin(), order.end(), name) != order.end();
    });
    unload_unused(machine, std::move(candidates), report);
    restore_firmware(machine.host, main, record, firmware_places(record, request.firmware_directory), report.warnings);
    if (record) settle_record(request, *record, machine, report);
    for (const auto& name : order) {
        const auto other = name == main ? std::nullopt : read_record(machine.host, name);
        if (!other || other->unloaded || live_module(machine.host, name)) continue;
        restore_firmware(machine.host, name, other, firmware_places(other, ""), report.warnings);
        settle_record(request, *other, machine, report);
    }
    try {
        forget_gone_leftovers(machine.host);
    } catch (const Error& error) {
        report.warnings.push_back(fmt::format("no-record: {}", message_in_context(error)));
    }
    report.modules.push_back(std::move(main_report));
    if (!gone.empty()) warn_of_unwatched(machine.host, taint_before, report.warnings);
    report.new_taint = taint_letters(taint_bits(machine.host) & ~taint_before);
}

}  // namespace

Report unload_modules(const UnloadRequest& request, const Machine& machine) {
    Report report;
    try {
        unload_into(report, request, machine);
    } catch (Error& error) {
        add_warnings(error, warnings_as_findings(report.warnings));
        throw;
    }
    return report;
}

}  // namespace kmm::kmod
