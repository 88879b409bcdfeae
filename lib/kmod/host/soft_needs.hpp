// SPDX-License-Identifier: Apache-2.0
// Softdeps of modules of the host's own tree. Source: libkmod-module.c of kmod 30 (__kmod_module_get_probe_list).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmod/host/host.hpp"
#include "kmod/host/host_tree.hpp"
#include "kmod/host/modprobe_config.hpp"

namespace kmm::kmod {

/// Where softdeps of the host are looked up.
struct SoftPlace {
    const HostPaths& host;
    const std::string& directory;  ///< of the host's modules
    ModprobeConfig& config;        ///< of the host; options of aliases are given to the modules that these name
    std::function<bool(const std::string&)> is_elsewhere = {};  ///< true for a module that is not taken from the host
    std::map<std::string, std::string> named = {};  ///< of the modules, which came for one that a softdep names
    std::vector<HostModule> live = {};  ///< needed and live already: their softdeps count, too
};

/// Puts modules that softdeps of `modules` (of their files and of modprobe.d) name before and after them, with what
/// these need and name themselves, in modprobe's order. As for libkmod, a module that is live is only not loaded
/// itself; softdeps that the host's tree does not have are passed over. Adds the new names to `optional`.
void add_soft_needs(const SoftPlace& place, std::vector<HostModule>& modules, std::set<std::string>& optional);

/// The warning for module `name`, which only a softdep names and which could not be loaded; nullopt if `error` ends
/// the load nevertheless.
[[nodiscard]] std::optional<std::string> soft_failure(const std::string& name, const Error& error);

/// The modules of the host that have `name` as alias; none where `name` is a module itself. As libkmod looks a name up,
/// aliases count before what is built into the kernel: "crc32" stands for the modules that compute it faster.
[[nodiscard]] std::vector<std::string> modules_behind(const HostPaths& host, const std::string& directory,
                                                      const std::string& name);

}  // namespace kmm::kmod
