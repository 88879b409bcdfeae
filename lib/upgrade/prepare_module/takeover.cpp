// SPDX-License-Identifier: Apache-2.0
#include "upgrade/prepare_module/takeover.hpp"

#include <fmt/format.h>

#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/module_nodes/look.hpp"
#include "upgrade/prepare_module/prepare_parts.hpp"

namespace kmm::drive {
namespace {

HeldNode look_at_held(const api::Objects& objects, const api::Module& module, Worker& worker, sys::Clock& clock,
                      const StartRequest& request, const std::string& name, const Waiting& waiting,
                      std::optional<upgrade::module::Node>& record) {
    HeldNode held;
    held.name = name;
    const auto view = view_of(objects, name, module.meta.namespace_, module.meta.name);
    if (view.spec || view.status) {
        held.holding = Holding::managed;
        held.message = "its NodeModulesConfig names the Module already";
        return held;
    }
    const auto kernel_module = kernel_module_name(module.module_loader->container.modprobe.module_name);
    LiveModule live;
    record = look_before(objects, worker, clock, request, kernel_module, name, live, waiting);
    if (live.presence != Presence::live) {
        held.holding = Holding::absent;
        held.message = kernel_module + " is not loaded";
        return held;
    }
    const Deadline deadline(clock, std::chrono::milliseconds(request.options.node_timeout_ms));
    const auto entry = resolve_entry(module, record->kernel);
    if (begins_with_unload(view, entry, entry.version, true, true)) {
        held.holding = Holding::other;
        held.message = "its version labels are of another version, which is unloaded first: kmm-upgrade start";
        return held;
    }
    waiting.observer(name, "check");
    const auto checked =
        worker.run("check", name, worker_input(entry.config, secret_for(objects, module, entry.image_repo_secret)),
                   deadline.left());
    if (checked.error) throw *checked.error;
    const auto& target = checked.value->identity;
    const auto same = upgrade::module::compare(live.identity, target);
    held.holding = same == upgrade::module::Sameness::same ? Holding::right : Holding::other;
    held.message = same == upgrade::module::Sameness::same
                       ? fmt::format("{} {} is live, as in {}", kernel_module, live.identity.brief(),
                                     entry.config->container_image)
                       : fmt::format("{} {} is live, {} has {}", kernel_module, live.identity.brief(),
                                     entry.config->container_image, target.brief());
    return held;
}

HeldNode unknown_node(const std::string& name, const Error& error) {
    return {name, Holding::unknown, error.code() + ": " + error.message()};
}

}  // namespace

std::vector<HeldNode> survey_held(const cluster::Snapshot& snapshot, Worker& worker, sys::Clock& clock,
                                  const StartRequest& request, const CheckObserver& observer) {
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto& module = find_module(snapshot.objects, request.ns, request.name);
    if (!module.module_loader)
        throw Error(Exit::checks_failed, "no-module-loader",
                    fmt::format("Module {} loads no kernel module", module.full_name()))
            .at(module.meta.origin);
    require_wanted(module);
    const auto chosen = choose_nodes(snapshot.objects, module, request);
    const auto& names = chosen.names;
    std::vector<HeldNode> all(names.size());
    std::vector<std::optional<upgrade::module::Node>> records(names.size());
    Watchdog watchdog;
    for_each_at_once(names.size(), [&](std::size_t index) {
        try {
            all[index] = look_at_held(snapshot.objects, module, worker, clock, request, names[index],
                                      {watchdog, observer}, records[index]);
        } catch (const Error& error) {
            if (error.code() == "bug" || cluster::ends_run(error)) throw;
            all[index] = unknown_node(names[index], error);
        }
    });
    const auto shared = shared_hosts(snapshot.objects, request, records);
    for (std::size_t index = 0; index < names.size(); ++index)
        if (shared[index]) all[index] = unknown_node(names[index], *shared[index]);
    for (const auto& node : chosen.left_out) all.push_back({node.name, Holding::unknown, node.reason});
    return all;
}

}  // namespace kmm::drive
