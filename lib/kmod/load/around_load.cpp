// SPDX-License-Identifier: Apache-2.0
// What a load does before its first change and after its last: which in-tree modules give way, and a second look.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/load/steps.hpp"

namespace kmm::kmod {

namespace {

bool is_in(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

Error not_in_tree_error(const std::string& name, const std::string& owner) {
    return Error(Exit::refused, "not-in-tree",
                 fmt::format("module {} is not the kernel's own: kmm-worker loaded it{}", name,
                             owner == name ? "" : fmt::format(" for module {}", owner)))
        .hint(fmt::format("kmm-worker unload --module {}, then load again; or take {} off inTreeModulesToRemove", owner,
                          name));
}

}  // namespace

bool listed_for_removal(const LoadRequest& request, const std::string& name) {
    return std::any_of(request.in_tree_modules_to_remove.begin(), request.in_tree_modules_to_remove.end(),
                       [&](const std::string& listed) { return normalise_name(listed) == name; });
}

std::vector<std::string> removal_order(const Machine& machine, const LoadRequest& request,
                                       const std::map<std::string, std::string>& same,
                                       std::vector<std::string>& warnings) {
    std::vector<std::string> live_names;
    for (const auto& raw : request.in_tree_modules_to_remove) {
        const std::string name = normalise_name(raw);
        if (same.contains(name) || is_in(live_names, name)) continue;
        const auto live = settled_module(machine, name);
        if (!live) continue;
        if (live->state == "builtin") {
            warnings.push_back(fmt::format("in-tree-builtin: {} is built into the kernel and stays", name));
            continue;
        }
        if (const std::string owner = owner_on_record(machine.host, *live, normalise_name(request.module));
            !owner.empty())
            throw not_in_tree_error(name, owner).add_context("in-tree modules to remove");
        if (is_permanent(machine.host, name)) throw permanent_error(name).add_context("in-tree modules to remove");
        live_names.push_back(name);
    }
    std::vector<std::string> order;
    while (order.size() < live_names.size()) {
        const std::size_t before = order.size();
        for (const auto& name : live_names) {
            if (is_in(order, name)) continue;
            const auto live = live_module(machine.host, name);
            const bool free = !live || std::all_of(live->holders.begin(), live->holders.end(),
                                                   [&](const std::string& h) { return is_in(order, h); });
            if (free) order.push_back(name);
        }
        if (order.size() != before) continue;
        for (const auto& name : live_names) {
            if (!is_in(order, name)) throw busy_error(machine, name).add_context("in-tree modules to remove");
        }
    }
    return order;
}

void take_second_look(const Machine& machine, const ModuleIndex& index, const SecondLook& look,
                      std::vector<std::string>& warnings) {
    if (machine.patience.second_look.count() <= 0) return;
    KernelLog log(machine.host.kmsg);
    if (!machine.clock.sleep_for(machine.patience.second_look)) {
        warnings.push_back(
            fmt::format("second-look-early: a signal came, and module {} was looked at again before {} had passed",
                        look.main, base::format_duration(machine.patience.second_look)));
    }
    require_healthy(machine, look.taint_before, {fmt::format("module {} was settling", look.main), look.main}, log);
    for (const auto& name : look.loaded) {
        const IndexedModule* module = index.find(name);
        if (module == nullptr) continue;
        const auto live = live_module(machine.host, name);
        const std::string later = base::format_duration(machine.patience.second_look);
        if (!live || live->state != "live") {
            throw Error(
                Exit::refused, "module-replaced",
                fmt::format("module {} was loaded, but is {} {} later", name, live ? live->state : "gone", later))
                .hint("something on this node unloads it; look at the kernel's log and at udev's");
        }
        const IdentityVerdict verdict = judge_identity(machine.host, *module, *live);
        if (verdict.identity != Identity::different) continue;
        throw Error(Exit::refused, "module-replaced",
                    fmt::format("module {} was loaded, but another build is live {} later", name, later))
            .detail("loaded", fmt::format("{} {}", verdict.what, verdict.loaded))
            .detail("wanted", fmt::format("{} {}", verdict.what, verdict.wanted))
            .hint("udev has loaded another one by its alias: blacklist that one on the node, then load again");
    }
}

}  // namespace kmm::kmod
