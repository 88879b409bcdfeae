// SPDX-License-Identifier: Apache-2.0
#include "upgrade/prepare_module/prepare_apply.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "api/linux_nodes.hpp"
#include "api/workload.hpp"
#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "upgrade/prepare_module/prepare_parts.hpp"

namespace kmm::drive {
namespace {

bool holds(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_chosen(const StartRequest& request, const api::Node& node) {
    return (request.nodes.empty() || holds(request.nodes, node.meta.name)) &&
           request.selector.matches(node.meta.labels);
}

/// Takes a node of another system out of all that is to be done or is reported: it never gets a module.
void keep_out(plan::ApplyWork& work, const std::string& node) {
    std::size_t found = 0;
    for (auto* names : {&work.load, &work.unload, &work.ordered}) found += std::erase(*names, node);
    for (auto* lefts : {&work.blocked, &work.kept_out})
        found += std::erase_if(*lefts, [&](const plan::ApplyLeft& left) { return left.node == node; });
    if (found > 0) work.kept_out.push_back({node, "node-not-linux", std::string(k_no_linux)});
}

/// nullptr if it was deleted.
const api::Module* module_of(const api::Objects& objects, const plan::ApplyWork& work) {
    for (const auto& module : objects.modules)
        if (module.meta.namespace_ == work.namespace_ && module.meta.name == work.module) return &module;
    return nullptr;
}

/// Status of one node that is to lose the module. Throws the Error that keeps it from that.
upgrade::module::Node check_leaving(const api::Objects& objects, Worker& worker, sys::Clock& clock,
                                    const StartRequest& request, const plan::ApplyWork& work,
                                    const std::string& kernel_module, const std::string& name, const Waiting& waiting) {
    const auto view = view_of(objects, name, work.namespace_, work.module);
    require_name(view, work.full_name(), kernel_module);
    LiveModule live;
    auto record = look_before(objects, worker, clock, request, kernel_module, name, live, waiting);
    record.goal = upgrade::module::k_goal_absent;
    if (const auto* entry = entry_there(view)) {
        record.target_entry = api::encode(*entry);
        record.target_image = entry->config->container_image;
    }
    note_previous(record, view, live);
    if (live.presence != Presence::live) return record;
    if (view.status && !view.status->boot_id.empty() && view.status->boot_id != record.boot_id)
        throw Error(Exit::checks_failed, "module-unmanaged",
                    fmt::format("{} is live, but its NodeModulesConfig entry is of an earlier boot", kernel_module))
            .hint("something loads it at boot: remove that, unload it on the node and apply again");
    require_unshared(objects, name, work.full_name(), kernel_module, "");
    api::Module gone;
    gone.meta.namespace_ = work.namespace_;
    gone.meta.name = work.module;
    const auto* module = module_of(objects, work);
    require_unguarded(plan::unload_guard(objects, module != nullptr ? *module : gone, name, record.boot_id));
    return record;
}

}  // namespace

std::string kernel_module_of(const api::Objects& objects, const plan::ApplyWork& work) {
    const auto* module = module_of(objects, work);
    if (module != nullptr && module->module_loader)
        return kernel_module_name(module->module_loader->container.modprobe.module_name);
    for (const auto& node : work.unload) {
        const auto view = view_of(objects, node, work.namespace_, work.module);
        if (const auto* entry = entry_there(view)) return kernel_module_name(entry->config->modprobe.module_name);
    }
    throw bug(fmt::format("nothing says which kernel module {} is about", work.full_name()));
}

std::vector<std::string> ask_nodes(api::Objects& objects, Worker& worker, sys::Clock& clock,
                                   const StartRequest& request, const std::vector<plan::ApplyWork>& works,
                                   const CheckObserver& observer) {
    std::vector<std::pair<api::Node*, std::string>> asked;
    for (auto& node : objects.nodes) {
        if (!is_chosen(request, node) || !api::runs_linux(node)) continue;
        for (const auto& work : works) {
            const auto* module = module_of(objects, work);
            const auto view = view_of(objects, node.meta.name, work.namespace_, work.module);
            const auto* entry = entry_there(view);
            const bool is_selected =
                module != nullptr && module->module_loader && plan::selects(module->selector, node.meta.labels);
            if (!is_selected && entry == nullptr) continue;
            asked.emplace_back(&node,
                               kernel_module_name(is_selected ? module->module_loader->container.modprobe.module_name
                                                              : entry->config->modprobe.module_name));
            break;
        }
    }
    require_one_host(request.options, asked.size());
    std::vector<std::string> troubles(asked.size());
    std::vector<std::optional<upgrade::module::Node>> records(asked.size());
    Watchdog watchdog;
    for_each_at_once(asked.size(), [&](std::size_t index) {
        const auto& node = *asked[index].first;
        try {
            LiveModule live;
            records[index] = look_before(objects, worker, clock, request, asked[index].second, node.meta.name, live,
                                         {watchdog, observer});
        } catch (const Error& error) {
            if (cluster::ends_run(error)) throw;
            troubles[index] = fmt::format("node {} cannot be asked for its kernel and boot, its Node counts: {}",
                                          node.meta.name, error.message());
        }
    });
    for (const auto& error : shared_hosts(objects, request, records))
        if (error) throw Error(*error);
    for (std::size_t index = 0; index < asked.size(); ++index) {
        if (!records[index]) continue;
        asked[index].first->kernel_version = records[index]->kernel;
        asked[index].first->boot_id = records[index]->boot_id;
        asked[index].first->architecture = records[index]->architecture;
    }
    std::erase(troubles, "");
    return troubles;
}

plan::ApplyWork narrow(plan::ApplyWork work, const api::Objects& objects, const StartRequest& request) {
    std::vector<std::string> known;
    std::vector<std::string> chosen;
    for (const auto& node : objects.nodes) {
        known.push_back(node.meta.name);
        if (is_chosen(request, node)) chosen.push_back(node.meta.name);
    }
    for (const auto& name : request.nodes) {
        if (holds(known, name)) continue;
        const auto near = base::nearest(name, known);
        throw Error(Exit::not_found, "node-not-found", fmt::format("node {} is not in the cluster", name))
            .hint(near ? "did you mean " + *near + "?" : "there are: " + base::join(known, ", "));
    }
    for (auto* names : {&work.load, &work.unload, &work.ordered})
        std::erase_if(*names, [&](const std::string& name) { return !holds(chosen, name); });
    for (auto* lefts : {&work.blocked, &work.kept_out})
        std::erase_if(*lefts, [&](const plan::ApplyLeft& left) { return !holds(chosen, left.node); });
    for (const auto& node : objects.nodes)
        if (!api::runs_linux(node)) keep_out(work, node.meta.name);
    return work;
}

std::vector<upgrade::LeftOut> left_out_of(const api::Objects& objects, const StartRequest& request,
                                          const plan::ApplyWork& work) {
    std::vector<upgrade::LeftOut> all;
    for (const auto& left : work.blocked) all.push_back({left.node, left.message});
    const auto* module = module_of(objects, work);
    if (module == nullptr || !module->module_loader || !work.version.empty()) return all;
    for (const auto& node : objects.nodes) {
        const auto& name = node.meta.name;
        if (!is_chosen(request, node) || !api::runs_linux(node) ||
            !plan::selects(module->selector, node.meta.labels) ||
            holds(work.load, name) || holds(work.unload, name))
            continue;
        const auto reason = left_out_reason(*module, node);
        const bool is_known = std::any_of(all.begin(), all.end(), [&](const auto& left) { return left.name == name; });
        if (!reason.empty() && !is_known &&
            entry_there(view_of(objects, name, work.namespace_, work.module)) == nullptr)
            all.push_back({name, reason});
    }
    std::sort(all.begin(), all.end(), [](const auto& left, const auto& right) { return left.name < right.name; });
    return all;
}

void overlook_own_cordons(api::Objects& objects) {
    for (auto& node : objects.nodes) {
        const auto owner = node.meta.annotations.find(std::string(api::k_annotation_cordoned_by));
        if (owner == node.meta.annotations.end() || !owner->second.starts_with(k_owner_prefix)) continue;
        std::erase_if(node.taints, [](const api::Taint& taint) { return taint.key == api::k_taint_unschedulable; });
    }
}

Prepared prepare_apply(const cluster::Snapshot& snapshot, Worker& worker, sys::Clock& clock, StartRequest request,
                       const plan::ApplyWork& work, const CheckObserver& observer) {
    const auto& objects = snapshot.objects;
    const auto* module = module_of(objects, work);
    if (module != nullptr && !work.load.empty()) require_valid(objects, *module);
    request.ns = work.namespace_;
    request.name = work.module;
    request.to_version = work.version;
    const auto kernel_module = kernel_module_of(objects, work);
    auto names = work.load;
    names.insert(names.end(), work.unload.begin(), work.unload.end());
    Prepared prepared;
    names = walk_order(objects, request, std::move(names), prepared.notes);
    Watchdog watchdog;
    const Waiting waiting{watchdog, observer};
    auto records = check_all(objects, request, names, [&](const std::string& node) {
        if (holds(work.unload, node))
            return check_leaving(objects, worker, clock, request, work, kernel_module, node, waiting);
        return check_node(objects, *module, worker, clock, request, kernel_module, node, waiting);
    });
    prepared.run = make_run(request, work.namespace_, work.module, kernel_module, std::move(records), clock);
    auto& run = prepared.run;
    run.left_out = left_out_of(objects, request, work);
    run.procedure = upgrade::module::k_procedure_apply;
    run.rules = &upgrade::module::procedure_apply();
    return prepared;
}

}  // namespace kmm::drive
