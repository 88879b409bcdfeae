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

std::string WorkerWay::loss_by_reboot(const std::string& name, const std::string& boot_id) {
    if (boot_id.empty() || boot_id == tools_.node(name).boot_id) return "";
    const auto live = glance(name);
    if (!live) return "rebooted after it was done, and does not answer";
    try {
        require_target(name, Look{NodeFacts{}, *live});
    } catch (const Error& error) {
        return fmt::format("rebooted after it was done: {}", error.message());
    }
    return "";
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
