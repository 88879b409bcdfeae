// SPDX-License-Identifier: Apache-2.0
// The arguments of modprobe that a ModuleConfig may carry (`args`, `rawArgs`), read and never run: what they mean is
// done by this tool. Source: man 8 modprobe of kmod 30.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace kmm::kmod {

/// Which checks of the kernel are given up.
struct Force {
    bool vermagic = false;     ///< MODULE_INIT_IGNORE_VERMAGIC
    bool modversions = false;  ///< MODULE_INIT_IGNORE_MODVERSIONS
    bool removal = false;      ///< O_TRUNC of delete_module
    [[nodiscard]] bool any() const noexcept { return vermagic || modversions || removal; }
};

/// What a modprobe command line asks for.
struct ModprobeCommand {
    std::vector<std::string> modules;      ///< one, or several with -a or -r
    std::vector<std::string> parameters;   ///< KEY=VALUE of the one module
    std::optional<std::string> directory;  ///< -d
    Force force;
    bool remove = false;                   ///< -r
    bool first_time = false;               ///< already loaded, or not loaded, is an error
    bool use_blacklist = false;            ///< -b
    bool ignore_install = false;           ///< -i: install and remove commands do not count
    bool remove_holders = false;
    std::optional<std::chrono::milliseconds> wait;  ///< -w
    std::vector<std::string> forcing;      ///< the forcing flags as they were given, for messages
};

enum class ArgsKind { options_only, whole_command };

/// Reads `arguments`; `field` ("modprobe.rawArgs.load") is for messages. Talkative options are accepted and have no
/// effect. With options_only (KMM's args) a module or parameter is an error. Errors: data (65) "unsupported" for
/// options that have no meaning here (with the way to say it), "bad-value" for a missing or malformed value,
/// "missing-field" for a whole command without a module.
[[nodiscard]] ModprobeCommand read_modprobe_arguments(const std::vector<std::string>& arguments,
                                                      const std::string& field, ArgsKind kind);

/// What a whole modprobe command does: with -r it unloads.
enum class Direction { loads, unloads };

/// Data (65) "bad-value" for a command that unloads where one that loads is expected, and the reverse; else nullopt.
[[nodiscard]] std::optional<Error> wrong_direction(const ModprobeCommand& command, const std::string& field,
                                                   Direction expected);

/// Data (65) "force-refused", which names the flags of `command` that force; the hint is the caller's.
[[nodiscard]] Error force_refusal(const ModprobeCommand& command, const std::string& field);

/// Where `directory` of -d is in the image: directories of KMM's worker are below /tmp, where its image is copied to.
[[nodiscard]] std::string image_directory(const std::string& directory);

}  // namespace kmm::kmod
