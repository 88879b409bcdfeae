// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/guard.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/module_name.hpp"
#include "base/text.hpp"
#include "plan/decide/order.hpp"
#include "plan/decide/policy.hpp"
#include "plan/kmm/find_named.hpp"

namespace kmm::plan {

std::set<LoadedModule> loaded_modules(const api::Objects& objects, const std::string& node,
                                      const std::string& boot_id) {
    std::set<LoadedModule> loaded;
    const auto* config = find_named(objects.node_modules_configs, node);
    if (config == nullptr) { return loaded; }
    for (const auto& entry : config->status) {
        const bool this_boot = boot_id.empty() || entry.boot_id.empty() || entry.boot_id == boot_id;
        if (this_boot) { loaded.insert({entry.namespace_, entry.name}); }
    }
    return loaded;
}

std::optional<Guard> unload_guard(const api::Objects& objects, const api::Module& module, const std::string& node,
                                  const std::string& boot_id) {
    const std::string name = module.full_name();
    if (unload_policy(module) == UnloadPolicy::never) {
        return Guard{"unload-policy",
                     fmt::format("another build of Module {} is loaded, and its unload policy is never", name),
                     fmt::format("reboot the node before you upgrade it, or change the annotation {}",
                                 k_annotation_unload_policy)};
    }
    const auto loaded = loaded_modules(objects, node, boot_id);
    std::vector<std::string> users;
    for (const auto& other : objects.modules) {
        const auto needed = needs(other);
        const bool uses = std::find(needed.begin(), needed.end(), name) != needed.end();
        if (uses && other.full_name() != name && loaded.contains({other.meta.namespace_, other.meta.name})) {
            users.push_back(other.full_name());
        }
    }
    if (users.empty()) { return std::nullopt; }
    return Guard{
        "module-needed",
        fmt::format("Module {} cannot be unloaded: {}, which {} loaded, {} it", name, base::join(users, " and "),
                    users.size() == 1 ? "is" : "are", users.size() == 1 ? "needs" : "need"),
        fmt::format("unload {} on the node first, and load {} after the upgrade", base::join(users, " and "),
                    users.size() == 1 ? "it" : "them")};
}

std::optional<Guard> rename_guard(const std::string& name, const std::string& kernel_module,
                                  const api::NodeModule* loaded) {
    if (loaded == nullptr) { return std::nullopt; }
    const std::string there = base::kernel_module_name(loaded->config->modprobe.module_name);
    const std::string wanted = base::kernel_module_name(kernel_module);
    if (there.empty() || there == wanted) { return std::nullopt; }
    return Guard{"module-renamed", fmt::format("Module {} has loaded {}, expected {}", name, there, wanted),
                 "delete the Module and apply that first; then create it with the other moduleName"};
}

std::optional<Guard> load_guard(const api::Objects& objects, const api::Module& module, const std::string& node,
                                const std::string& boot_id) {
    const auto loaded = loaded_modules(objects, node, boot_id);
    std::vector<std::string> lacking;
    for (const auto& name : needs(module)) {
        const bool is_there = std::any_of(loaded.begin(), loaded.end(),
                                          [&](const LoadedModule& there) { return there.full_name() == name; });
        if (!is_there) { lacking.push_back(name); }
    }
    if (lacking.empty()) { return std::nullopt; }
    return Guard{"needs-not-loaded",
                 fmt::format("Module {} needs {}, which {} not loaded", module.full_name(),
                             base::join(lacking, " and "), lacking.size() == 1 ? "is" : "are"),
                 fmt::format("load {} on the node first", base::join(lacking, " and "))};
}

}  // namespace kmm::plan
