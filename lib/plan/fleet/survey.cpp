// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/survey.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/linux_nodes.hpp"
#include "base/text.hpp"
#include "plan/kmm/template.hpp"

namespace kmm::plan {

namespace {

bool node_has(const api::Objects& objects, const std::string& node, const api::Module& module) {
    for (const auto& config : objects.node_modules_configs) {
        if (config.meta.name != node) continue;
        for (const auto& status : config.status)
            if (status.name == module.meta.name && status.namespace_ == module.meta.namespace_) return true;
    }
    return false;
}

std::vector<Pool> pools_of(const api::Objects& objects, const api::Module& module) {
    std::map<std::pair<std::string, std::string>, Pool> pools;
    const auto tolerations = loader_tolerations(module);
    for (const auto& node : objects.nodes) {
        if (!selects(module.selector, node.meta.labels) || !api::runs_linux(node)) continue;
        const bool loaded = node_has(objects, node.meta.name, module);
        if (!loaded && !tolerates(tolerations, lasting_taints(node.taints))) continue;
        auto& pool = pools[{node.kernel_version, node.architecture}];
        pool.kernel = node.kernel_version;
        pool.architecture = node.architecture;
        pool.nodes.push_back(node.meta.name);
        if (loaded) pool.loaded.push_back(node.meta.name);
    }
    std::vector<Pool> result;
    for (auto& [key, pool] : pools) {
        std::sort(pool.nodes.begin(), pool.nodes.end());
        std::sort(pool.loaded.begin(), pool.loaded.end());
        result.push_back(std::move(pool));
    }
    return result;
}

}  // namespace

std::vector<Surveyed> survey(const api::Objects& objects, const std::vector<std::string>& kernels) {
    std::vector<std::string> distinct;
    for (const auto& kernel : kernels) {
        require_kernel_name(kernel);
        if (!template_variables(kernel, "", ""))
            throw Error(Exit::usage, "bad-kernel",
                        fmt::format("\"{}\" is not a kernel version, expected three parts or more as in 6.1.0-56-amd64",
                                    base::escape(kernel)))
                .hint("name it as uname -r prints it");
        if (std::find(distinct.begin(), distinct.end(), kernel) == distinct.end()) distinct.push_back(kernel);
    }
    std::map<const api::Module*, std::vector<Pool>> pools;
    std::vector<Surveyed> result;
    for (const auto& kernel : distinct) {
        for (const auto& module : objects.modules) {
            if (!module.module_loader || module.meta.deleting) continue;
            auto known = pools.find(&module);
            if (known == pools.end()) known = pools.emplace(&module, pools_of(objects, module)).first;
            result.push_back(Surveyed{kernel, &module, Resolver(module).resolve(kernel), known->second});
        }
    }
    return result;
}

}  // namespace kmm::plan
