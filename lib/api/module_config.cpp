// SPDX-License-Identifier: Apache-2.0
#include "api/module_config.hpp"

namespace kmm::api {

const char* in_tree_field(const ModuleConfig& config) noexcept {
    return config.in_tree_modules_to_remove.empty() && !config.in_tree_module_to_remove.empty()
               ? "inTreeModuleToRemove"
               : "inTreeModulesToRemove";
}

std::vector<std::string> in_tree_removals(const ModuleConfig& config) {
    if (config.in_tree_modules_to_remove.empty() && !config.in_tree_module_to_remove.empty())
        return {config.in_tree_module_to_remove};
    return config.in_tree_modules_to_remove;
}

bool has_raw_arguments(const ModprobeSpec& modprobe) noexcept {
    return modprobe.raw_args && (!modprobe.raw_args->load.empty() || !modprobe.raw_args->unload.empty());
}

}  // namespace kmm::api
