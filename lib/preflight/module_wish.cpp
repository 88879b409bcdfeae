// SPDX-License-Identifier: Apache-2.0
#include "preflight/module_wish.hpp"

#include <optional>

#include "kmod/host/modprobe_args.hpp"

namespace kmm::preflight {

namespace {

std::optional<kmod::ModprobeCommand> read_arguments(const std::vector<std::string>& arguments, const char* field,
                                                    kmod::ArgsKind kind, Diagnostics& findings) {
    try {
        return kmod::read_modprobe_arguments(arguments, field, kind);
    } catch (const Error& error) {
        findings.push_back({Severity::warning, "unsupported", error.message(), std::nullopt, error.hint(),
                            Exit::checks_failed});
        return std::nullopt;
    }
}

/// rawArgs.load stands in the place of moduleName, parameters and modulesLoadingOrder.
void take_raw_arguments(const std::vector<std::string>& arguments, ModuleWish& made) {
    const auto command = read_arguments(arguments, "modprobe.rawArgs.load", kmod::ArgsKind::whole_command,
                                        made.findings);
    made.wish.parameters.clear();
    made.wish.loading_order.clear();
    made.of_host = !command || !command->directory || *command->directory == "/";
    if (!command) return;
    made.wish.module = command->modules.front();
    made.wish.also.assign(command->modules.begin() + 1, command->modules.end());
    made.wish.parameters = command->parameters;
    made.wish.uses_blacklist = command->use_blacklist;
    made.wish.ignores_install = command->ignore_install;
    if (!made.of_host) made.dir_name = kmod::image_directory(*command->directory);
}

}  // namespace

ModuleWish wish_of(const api::ModuleConfig& config, const std::string& kernel) {
    const auto& modprobe = config.modprobe;
    ModuleWish made;
    if (!modprobe.dir_name.empty()) made.dir_name = modprobe.dir_name;
    made.wish.module = modprobe.module_name;
    made.wish.parameters = modprobe.parameters;
    made.wish.loading_order = modprobe.modules_loading_order;
    made.wish.in_tree_modules_to_remove = config.in_tree_modules_to_remove;
    if (!config.in_tree_module_to_remove.empty())
        made.wish.in_tree_modules_to_remove.push_back(config.in_tree_module_to_remove);
    made.wish.release = kernel;
    made.wish.has_firmware = !modprobe.firmware_path.empty();
    if (modprobe.raw_args && !modprobe.raw_args->load.empty()) {
        take_raw_arguments(modprobe.raw_args->load, made);
    } else if (modprobe.args) {
        const auto command = read_arguments(modprobe.args->load, "modprobe.args.load", kmod::ArgsKind::options_only,
                                            made.findings);
        if (command) {
            made.wish.uses_blacklist = command->use_blacklist;
            made.wish.ignores_install = command->ignore_install;
            if (command->directory) made.dir_name = kmod::image_directory(*command->directory);
        }
    }
    return made;
}

}  // namespace kmm::preflight
