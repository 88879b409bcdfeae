// SPDX-License-Identifier: Apache-2.0
// What has to be true of a node that has got its module.
#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "upgrade/drive_module/worker_way.hpp"

namespace kmm::drive {

void WorkerWay::require_target(const std::string& name, const Look& seen) const {
    const auto node = tools_.node(name);
    const auto kernel_module = tools_.subject.kernel_module;
    if (seen.module.presence != Presence::live)
        throw Error(Exit::unhealthy, "module-gone", fmt::format("{} is not live any more", kernel_module));
    if (upgrade::module::compare(seen.module.identity, node.target_identity) == upgrade::module::Sameness::different)
        throw Error(Exit::unhealthy, "module-differs",
                    fmt::format("the live module is {}, expected {}", seen.module.identity.brief(),
                                node.target_identity.brief()));
}

std::optional<Loss> WorkerWay::loss(const api::Objects& /*objects*/, const std::string& name) {
    const auto reply = look_once(name);
    if (!reply.value) {
        if (!reply.settled() || reply.error->code() == "node-busy") return Loss{"", "", "", true};
        return Loss{reply.error->code(), reply.error->message(), reply.error->hint(), false};
    }
    const auto node = tools_.node(name);
    const auto& live = reply.value->module;
    const auto kernel_module = tools_.subject.kernel_module;
    if (live.presence == Presence::moving)
        return Loss{"loader-hung",
                    fmt::format("{} is still being loaded or unloaded, after it was done", kernel_module),
                    fmt::format("see who loads it there: kmm-worker status; then kmm-upgrade retry {}", name), true};
    if (node.goal == upgrade::module::k_goal_absent) {
        if (live.presence == Presence::absent) return std::nullopt;
        return Loss{"module-still-live", fmt::format("{} is live again, after it was unloaded", kernel_module),
                    fmt::format("look for a udev rule or a unit that loads it; kmm-upgrade retry {} unloads it again",
                                name)};
    }
    try {
        require_target(name, *reply.value);
    } catch (const Error& error) {
        if (!node.boot_id.empty() && reply.value->facts.boot_id != node.boot_id)
            return Loss{"node-rebooted", fmt::format("rebooted after it was done: {}", error.message()),
                        fmt::format("find out why it went down; kmm-upgrade retry {} loads it again", name)};
        return Loss{error.code(), error.message() + ", after it was done",
                    fmt::format("find out on the node what has changed it: kmm-worker status; kmm-upgrade retry {} "
                                "brings it there again",
                                name)};
    }
    return std::nullopt;
}

void WorkerWay::require_undisturbed(const std::string& name) {
    const auto node = tools_.node(name);
    const auto to = tools_.run().to_version;
    const auto view = tools_.fleet.view(name);
    const auto wanted = to.empty() ? std::nullopt : std::optional<std::string>(to);
    std::vector<std::string> others;
    const auto compare_label = [&](const char* label, const std::optional<std::string>& found) {
        if (found == wanted) return;
        others.push_back(fmt::format("label {} to {}", label, found ? *found : "nothing"));
    };
    compare_label("version-module", view.labels.module);
    compare_label("version-worker-pod", view.labels.worker);
    compare_label("version-schedule-pod", view.labels.schedule);
    const auto compare_entry = [&](const char* part, const std::optional<api::NodeModule>& found) {
        const auto entry = api::decode_node_module(node.target_entry);
        if (found && found->config == entry.config && found->version == entry.version) return;
        others.push_back(
            fmt::format("{} of its NodeModulesConfig to {}", part, found ? found->config->container_image : "nothing"));
    };
    compare_entry("spec", view.spec);
    compare_entry("status", view.status);
    if (others.empty()) return;
    throw Error(Exit::locked, "label-changed",
                fmt::format("someone else changed {} during the upgrade to {}", base::join(others, ", "),
                            to.empty() ? "the Module" : to))
        .hint("find out who; kmm-upgrade retry " + name + " sets it again");
}

}  // namespace kmm::drive
