// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/parameters.hpp"
#include "kmod/steps.hpp"

namespace kmm::kmod {

namespace {

ModuleReport report_of(const IndexedModule& module, Action action) {
    ModuleReport report;
    report.name = module.file.name;
    report.action = action;
    report.path = module.image_path;
    report.sha256 = module.sha256;
    report.srcversion = module.file.srcversion();
    report.build_id = module.file.build_id;
    report.version = module.file.version();
    report.vermagic = module.file.vermagic();
    return report;
}

ModuleReport report_of(const HostModule& module) {
    ModuleReport report;
    report.name = module.name;
    report.action = Action::dependency;
    report.path = module.path;
    report.vermagic = module.vermagic;
    return report;
}

bool contains(const std::vector<std::string>& list, const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); }

class Loader {
public:
    Loader(const ModuleIndex& index, const Preflight& checked, const LoadWish& wish, const FirmwareWish& firmware, const Machine& machine)
        : index_(index), checked_(checked), wish_(wish), firmware_(firmware), machine_(machine), main_(normalise_name(wish.module)) {}

    Report run() {
        look_at_live();
        if (!same_.contains(main_)) {
            const auto removal = removal_order();
            try {
                remove_in_tree(removal);
                install_firmware();
                note_intent();
                load_host_modules();
                load_image_modules();
            } catch (Error& error) {
                undo(error);
                throw;
            }
        } else {
            for (const auto& name : checked_.order.names) report_.modules.push_back(report_of(*index_.find(name), Action::already_loaded));
            warn_about_parameters();
        }
        finish_report();
        return std::move(report_);
    }

private:
    /// Which modules of the image are live already, and as what.
    void look_at_live() {
        for (const auto& name : checked_.order.names) {
            const auto live = settled_module(machine_, name);
            if (!live) continue;
            const IdentityVerdict verdict = compare_identity(index_.find(name)->file, *live);
            if (verdict.identity == Identity::different) {
                const bool in_tree = live->taint.find('O') == std::string::npos;
                if (!in_tree || !listed_for_removal(name)) throw differs_error(name, verdict);
                continue;
            }
            if (verdict.identity == Identity::unknown) {
                report_.warnings.push_back(fmt::format("identity-unknown: module {} has neither srcversion nor build id; only its name could be compared", name));
            }
            same_.insert(name);
        }
    }

    [[nodiscard]] bool listed_for_removal(const std::string& name) const {
        return std::any_of(wish_.in_tree_modules_to_remove.begin(), wish_.in_tree_modules_to_remove.end(), [&](const std::string& listed) {
            return normalise_name(listed) == name;
        });
    }

    /// Live modules of the removal list, users before what they use. Nothing has been changed when this throws.
    std::vector<std::string> removal_order() {
        std::vector<std::string> live_names;
        for (const auto& raw : wish_.in_tree_modules_to_remove) {
            const std::string name = normalise_name(raw);
            if (same_.contains(name) || contains(live_names, name)) continue;
            const auto live = settled_module(machine_, name);
            if (!live) continue;
            if (live->state == "builtin") {
                report_.warnings.push_back(fmt::format("in-tree-builtin: {} is built into the kernel and stays", name));
                continue;
            }
            live_names.push_back(name);
        }
        std::vector<std::string> order;
        while (order.size() < live_names.size()) {
            const std::size_t before = order.size();
            for (const auto& name : live_names) {
                if (contains(order, name)) continue;
                const auto live = live_module(machine_.host, name);
                const bool free = !live || std::all_of(live->holders.begin(), live->holders.end(), [&](const std::string& h) { return contains(order, h); });
                if (free) order.push_back(name);
            }
            if (order.size() != before) continue;
            for (const auto& name : live_names) {
                if (!contains(order, name)) throw busy_error(machine_, name).add_context("in-tree modules to remove");
            }
        }
        return order;
    }

    void remove_in_tree(const std::vector<std::string>& order) {
        for (const auto& name : order) {
            const auto live = live_module(machine_.host, name);
            if (!unload_one(machine_, name)) continue;
            removed_.push_back(name);
            ModuleReport entry;
            entry.name = name;
            entry.action = Action::removed_in_tree;
            if (live) {
                entry.srcversion = live->srcversion;
                entry.build_id = live->build_id;
                entry.taint = live->taint;
            }
            report_.modules.push_back(std::move(entry));
        }
    }

    void install_firmware() {
        if (firmware_.search_path.empty() && firmware_.from.empty()) return;
        std::string target = firmware_.search_path;
        const std::string old = firmware_search_path(machine_.host);
        if (target.empty()) target = old.empty() ? "/lib/firmware" : old;
        if (!firmware_.search_path.empty() && set_firmware_search_path(machine_.host, target)) {
            record_.old_firmware_path = old;
            record_.new_firmware_path = target;
        }
        if (!firmware_.from.empty()) record_.firmware = copy_firmware(firmware_.from, target);
    }

    /// Recorded before the first load, so that a kill in between leaves nothing unknown.
    void note_intent() {
        record_.module = main_;
        record_.removed_in_tree = removed_;
        const auto earlier = read_record(machine_.host, main_);
        for (const auto& name : checked_.order.names) {
            const bool ours = !same_.contains(name) || (earlier && contains(earlier->dependencies, name));
            if (name != main_ && ours) record_.dependencies.push_back(name);
        }
        try {
            write_record(machine_.host, record_);
        } catch (const Error& error) {
            report_.warnings.push_back(fmt::format("no-record: {}; unload will look at the kernel instead", error.message()));
        }
    }

    void load_host_modules() {
        for (const auto& module : checked_.host_modules) {
            if (settled_module(machine_, module.name)) continue;
            with_context([&] { return fmt::format("dependency {} of the host", module.name); }, [&] {
                const std::string bytes = read_module_bytes(module.path);
                ModuleFile file;
                try {
                    file = parse_module(bytes, module.path);
                } catch (Error& error) {
                    if (error.code() == "unsupported") error.hint(fmt::format("modprobe {} on the node before", module.name));
                    throw;
                }
                if (load_one(machine_, file, bytes, {}, report_.warnings) == Action::loaded) loaded_.push_back(module.name);
            });
            report_.modules.push_back(report_of(module));
        }
    }

    void load_image_modules() {
        for (const auto& name : checked_.order.names) {
            const IndexedModule& module = *index_.find(name);
            if (same_.contains(name)) {
                report_.modules.push_back(report_of(module, Action::already_loaded));
                continue;
            }
            const std::string bytes = read_module_bytes(module.path);
            if (sha256_hex(bytes) != module.sha256) {
                throw Error(Exit::integrity, "digest-mismatch", fmt::format("{} changed after it was checked", base::escape(module.image_path)));
            }
            const std::string parameters = name == main_ ? parameter_text(wish_.parameters) : std::string();
            const Action action = load_one(machine_, module.file, bytes, parameters, report_.warnings);
            if (action == Action::loaded) loaded_.push_back(name);
            report_.modules.push_back(report_of(module, action));
        }
    }

    /// Best effort: the error that led here is what the user must see.
    void undo(Error& error) {
        const bool leave = error.exit() == Exit::hung || error.exit() == Exit::unhealthy;
        if (leave) return;  // the kernel is not to be touched again
        std::string kept;
        for (auto it = loaded_.rbegin(); it != loaded_.rend(); ++it) {
            try {
                (void)unload_one(machine_, *it);
            } catch (const Error&) {
                kept += (kept.empty() ? "" : ", ") + *it;
            }
        }
        if (!kept.empty()) error.detail("stay-loaded", kept);
        std::string missing;
        for (auto it = removed_.rbegin(); it != removed_.rend(); ++it) {
            if (!bring_back(*it)) missing += (missing.empty() ? "" : ", ") + *it;
        }
        if (!missing.empty()) error.detail("in-tree-removed", missing);
        try {
            (void)remove_firmware(record_.firmware);
            if (record_.old_firmware_path) (void)set_firmware_search_path(machine_.host, *record_.old_firmware_path);
        } catch (const Error& second) {
            error.detail("firmware-path", second.message());
        }
        if (!same_.contains(main_)) erase_record(machine_.host, main_);
    }

    /// Loads an in-tree module again after a failure.
    bool bring_back(const std::string& name) {
        try {
            const auto need = find_host_module(host_module_directory(machine_.host, node_facts(machine_.host).kernel), name);
            if (!need) return false;
            for (const auto& module : need->modules) {
                if (live_module(machine_.host, module.name)) continue;
                const std::string bytes = read_module_bytes(module.path);
                (void)load_one(machine_, parse_module(bytes, module.path), bytes, {}, report_.warnings);
            }
            return true;
        } catch (const Error&) {
            return false;
        }
    }

    void warn_about_parameters() {
        const auto live = live_module(machine_.host, main_);
        if (!live) return;
        for (const auto& [key, value] : parameter_map(wish_.parameters)) {
            const auto it = live->parameters.find(key);
            if (it == live->parameters.end() || it->second == value) continue;
            const bool truth = (value == "1" || value == "y" || value == "on") && it->second == "Y";
            const bool untruth = (value == "0" || value == "n" || value == "off") && it->second == "N";
            if (truth || untruth) continue;
            report_.warnings.push_back(fmt::format("parameter-differs: {} is live with {}={}, wanted {}; unload it first to change that", main_, key,
                                                   base::escape(it->second), base::escape(value)));
        }
    }

    void finish_report() {
        for (auto& entry : report_.modules) {
            if (entry.action == Action::removed_in_tree) continue;
            if (const auto live = live_module(machine_.host, entry.name)) entry.taint = live->taint;
            if (entry.name == main_) {
                entry.role = Role::main;
                entry.parameters = parameter_map(wish_.parameters);
            }
        }
        for (const auto& finding : checked_.findings) {
            if (finding.severity == Severity::warning) report_.warnings.push_back(fmt::format("{}: {}", finding.code, finding.message));
        }
    }

    const ModuleIndex& index_;
    const Preflight& checked_;
    const LoadWish& wish_;
    const FirmwareWish& firmware_;
    const Machine& machine_;
    std::string main_;
    std::set<std::string> same_;        // live with the identity of the image's file
    std::vector<std::string> removed_;  // in-tree modules, in order
    std::vector<std::string> loaded_;   // by this call, in order
    LoadRecord record_;
    Report report_;
};

}  // namespace

std::string_view to_string(Action action) noexcept {
    switch (action) {
        case Action::load: return "load";
        case Action::loaded: return "loaded";
        case Action::already_loaded: return "already-loaded";
        case Action::unloaded: return "unloaded";
        case Action::not_loaded: return "not-loaded";
        case Action::removed_in_tree: return "removed-in-tree";
        case Action::dependency: return "dependency";
    }
    return "load";
}

Report describe(const ModuleIndex& index, const Preflight& checked, const LoadWish& wish) {
    Report report;
    for (const auto& module : checked.host_modules) report.modules.push_back(report_of(module));
    const std::string main = normalise_name(wish.module);
    for (const auto& name : checked.order.names) {
        ModuleReport entry = report_of(*index.find(name), Action::load);
        if (name == main) {
            entry.role = Role::main;
            entry.parameters = parameter_map(wish.parameters);
        }
        report.modules.push_back(std::move(entry));
    }
    for (const auto& finding : checked.findings) {
        if (finding.severity == Severity::warning) report.warnings.push_back(fmt::format("{}: {}", finding.code, finding.message));
    }
    return report;
}

Report load_modules(const ModuleIndex& index, const Preflight& checked, const LoadWish& wish, const FirmwareWish& firmware, const Machine& machine) {
    return Loader(index, checked, wish, firmware, machine).run();
}

}  // namespace kmm::kmod
