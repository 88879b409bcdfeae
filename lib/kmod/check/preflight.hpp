// SPDX-License-Identifier: Apache-2.0
// Everything that can be known about loading a set of modules without loading them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmod/host/host.hpp"
#include "kmod/host/host_tree.hpp"
#include "kmod/host/modprobe_args.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "kmod/host/module_index.hpp"

namespace kmm::kmod {

/// Whether the host's `blacklist` lines, which are about aliases, stop this load too (modprobe -b).
enum class BlacklistRule { aliases_only, honour };
/// Whether an `install` command of the host stops this load (modprobe runs it instead), or is passed over (-i).
enum class InstallCommands { refuse, ignore };

/// What is to be loaded.
struct LoadRequest {
    std::string module;                       ///< main module, either spelling
    std::vector<std::string> parameters;      ///< of the main module, "key=value"
    std::vector<std::string> loading_order;   ///< KMM's modulesLoadingOrder, may be empty
    std::vector<std::string> in_tree_modules_to_remove;
    std::vector<std::string> also = {};       ///< further modules to load after the main one
    std::string firmware = {};                ///< directory on this host with the image's firmware, "" for none
    Force force = {};                         ///< only with the user's long confirmation
    BlacklistRule blacklist = BlacklistRule::aliases_only;
    InstallCommands install_commands = InstallCommands::refuse;  ///< of `module` and `also`; others' commands count
    std::vector<ImageConfigFile> image_config = {};  ///< of the image's modprobedDir
    bool live_counts = false;  ///< what is live is left as it is, so that nothing need be loaded: see pardon_live()
};

/// How vermagic was judged.
enum class VermagicSource { module_of_the_kernel, release_only };

/// Result of the checks: the load in order, and what was found. It may be loaded if `findings` has no errors.
struct Preflight {
    LoadOrder order;
    std::vector<HostModule> host_modules;  ///< of the host's tree, to be loaded first, in order
    std::vector<HostModule> host_after = {};  ///< the same, to be loaded after the image's
    ModprobeConfig config;                 ///< of the host and the image
    VermagicSource vermagic_source = VermagicSource::release_only;
    Diagnostics findings;                  ///< errors have exit `checks_failed`; sorted
    Diagnostics pardoned = {};  ///< errors that are warnings in `findings`, as all is live: see require_live()
};

/// Words of `wanted` and `found` vermagic that differ. The release (first word) must be equal too: the kernel itself
/// skips it when both sides have symbol versions, but an image's directory is for one kernel only.
[[nodiscard]] std::vector<std::string> vermagic_differences(const std::string& module, const std::string& kernel);

/// Checks everything that can be known before: architecture, vermagic, symbols with their versions, namespaces and
/// licenses, parameters, dependencies, firmware, signatures and keys, the host's module configuration, conflicts, and
/// the switches of kernel and process. Codes: module-format, vermagic-differs, unknown-symbol, symbol-version-differs,
/// symbol-version-missing, unknown-parameter, bad-parameter, dependency-missing, no-module-support, modules-disabled
/// and those of kmod/check/host_checks.hpp; warnings: odd-parameter, symbols-not-checked, vermagic-not-checked,
/// versions-not-checked, soft-dependency-missing; soft-dependency-failed for a module that only a softdep asks for
/// and whose checks fail: it is taken out of the order. Errors: as ModuleIndex::order.
[[nodiscard]] Preflight preflight(const ModuleIndex& index, const LoadRequest& request, const HostPaths& host);

/// The modules `names` and what they need from the host's own tree, as if it were an image; nullopt if one is not
/// there. Errors: of reading a module file.
[[nodiscard]] std::optional<ModuleIndex> index_of_host(const HostPaths& host, const std::vector<std::string>& names);

/// The parameter text for a module: the host's options for it that `own` does not override, then `own`.
[[nodiscard]] std::string effective_parameters(const ModprobeConfig& config, const std::string& module,
                                               const std::vector<std::string>& own);

/// A parameter that a module gets, and which line of the host's configuration gives it; "" for those of the load
/// itself.
struct GivenParameter {
    std::string value, origin;
};

/// The parameters of that text which take effect: of one that is given twice the last, and of the host's those that the
/// module has.
[[nodiscard]] std::map<std::string, GivenParameter> given_parameters(const ModprobeConfig& config,
                                                                     const ModuleFile& module,
                                                                     const std::vector<std::string>& own);

/// Where a line of modprobe.d can be changed: "on the node", "in the image".
[[nodiscard]] const char* place_of(ConfigSource source);

/// What check_parameters() says of those `options` of a module that `own` does not override, each with its line. An
/// unknown one is a warning, as the kernel ignores it and modprobe hands it over. Texts with quotes inside are left to
/// the kernel.
void check_options(const ModuleFile& module, const std::vector<HostOption>& options,
                   const std::vector<std::string>& own, Diagnostics& findings);

/// Whether modprobe is called with module `name`, which is normalised: -b and -i hold for these alone, not for what
/// they need. `module` and `also`: what is asked for, in either spelling.
[[nodiscard]] bool is_named(std::string_view name, const std::string& module, const std::vector<std::string>& also);

/// The `alias` lines that make another module, or none, of the module `name`: warnings "host-alias"; of `if_off` where
/// modprobe loads none. `instead`: what this tool does, the end of the message.
void check_alias_lines(const ModprobeConfig& config, const std::string& name, std::string_view instead,
                       Severity if_off, Diagnostics& findings);

/// Throws the errors of `findings`, if any: exit checks_failed (10), code "check-failed", all findings attached.
void require_passed(const Preflight& result, const std::string& module);

}  // namespace kmm::kmod
