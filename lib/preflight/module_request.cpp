// SPDX-License-Identifier: Apache-2.0
#include "preflight/module_request.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/module_config.hpp"
#include "base/text.hpp"
#include "kmod/host/modprobe_args.hpp"
#include "kmod/ko/module_file.hpp"

namespace kmm::preflight {

namespace {

void find(Diagnostics& findings, Severity severity, const Error& error, const std::string& hint) {
    findings.push_back({severity, error.code(), error.message(), std::nullopt, hint, Exit::checks_failed});
}

std::optional<kmod::ModprobeCommand> read_arguments(const std::vector<std::string>& arguments, const char* field,
                                                    kmod::ArgsKind kind, Diagnostics& findings) {
    try {
        auto command = kmod::read_modprobe_arguments(arguments, field, kind);
        if (command.force.any())
            find(findings, Severity::warning, kmod::force_refusal(command, field),
                 "rebuild the module for that kernel; kmm-worker load refuses it without --i-understand-this-taints");
        if (const auto wrong = kmod::wrong_direction(command, field, kmod::Direction::loads))
            find(findings, Severity::error, *wrong, wrong->hint());
        return command;
    } catch (const Error& error) {
        find(findings, error.code() == "unsupported" ? Severity::warning : Severity::error, error, error.hint());
        return std::nullopt;
    }
}

/// rawArgs.load stands in the place of moduleName, parameters and modulesLoadingOrder.
void take_raw_arguments(const std::vector<std::string>& arguments, ModuleRequest& made) {
    const auto command = read_arguments(arguments, "modprobe.rawArgs.load", kmod::ArgsKind::whole_command,
                                        made.findings);
    made.request.parameters.clear();
    made.request.loading_order.clear();
    if (!command) {
        made.is_unread = true;
        for (auto& finding : made.findings) finding.severity = Severity::error;
        return;
    }
    made.of_host = !command->directory || *command->directory == "/";
    made.request.module = command->modules.front();
    made.request.also.assign(command->modules.begin() + 1, command->modules.end());
    made.request.parameters = command->parameters;
    made.request.uses_blacklist = command->use_blacklist;
    made.request.ignores_install = command->ignore_install;
    if (!made.of_host) made.dir_name = kmod::image_directory(*command->directory);
}

}  // namespace

ModuleRequest request_of(const api::ModuleConfig& config, const std::string& kernel) {
    const auto& modprobe = config.modprobe;
    ModuleRequest made;
    if (!modprobe.dir_name.empty()) made.dir_name = modprobe.dir_name;
    made.request.module = modprobe.module_name;
    made.request.parameters = modprobe.parameters;
    made.request.loading_order = modprobe.modules_loading_order;
    made.request.in_tree_modules_to_remove = api::in_tree_removals(config);
    made.request.release = kernel;
    made.request.has_firmware = !modprobe.firmware_path.empty();
    if (api::has_raw_arguments(modprobe)) {
        take_raw_arguments(modprobe.raw_args->load, made);
    } else if (modprobe.args) {
        const auto command = read_arguments(modprobe.args->load, "modprobe.args.load", kmod::ArgsKind::options_only,
                                            made.findings);
        if (command) {
            made.request.uses_blacklist = command->use_blacklist;
            made.request.ignores_install = command->ignore_install;
            if (command->directory) made.dir_name = kmod::image_directory(*command->directory);
        }
    }
    return made;
}

Diagnostics judge_of_host(ModuleRequest wanted, const std::string& modprobed_dir, const kernel::Interface* interface) {
    Diagnostics findings = std::move(wanted.findings);
    const auto& request = wanted.request;
    if (!modprobed_dir.empty())
        findings.push_back({Severity::warning, "unsupported",
                            fmt::format("modprobedDir is {}, and rawArgs.load without -d names modules of the node: "
                                        "kmm-worker refuses that",
                                        base::escape(modprobed_dir)),
                            std::nullopt, "add -d and the directory of the image to rawArgs.load",
                            Exit::checks_failed});
    std::vector<std::string> names = request.also;
    if (!request.module.empty()) names.insert(names.begin(), request.module);
    for (const auto& name : names) {
        if (interface != nullptr && interface->modules.contains(kmod::normalise_name(name))) continue;
        findings.push_back({Severity::warning, "dependency-not-known",
                            fmt::format("rawArgs.load names no directory of the image, so that module {} is loaded "
                                        "from the node's own tree: whether kernel {} has it is not known",
                                        base::escape(name), request.release),
                            std::nullopt, "add -d and the directory of the image, or see that the kernel has it",
                            Exit::checks_failed});
    }
    return findings;
}

}  // namespace kmm::preflight
