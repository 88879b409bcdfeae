// SPDX-License-Identifier: Apache-2.0
// What this tool loaded since the last boot: which dependencies came with a module, and what to put back at unload.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kmod/firmware.hpp"
#include "kmod/host.hpp"

namespace kmm::kmod {

/// Kept in <run>/loaded/<module> until unload or reboot, and after an unload while in-tree modules have not come back. A help, not a truth: sysfs decides what is live.
struct LoadRecord {
    std::string module;                         ///< main module
    std::vector<std::string> dependencies;      ///< modules of the image and of the host that were loaded for it, in load order
    std::vector<std::string> removed_in_tree;   ///< in-tree modules that were unloaded for it
    std::optional<std::string> old_firmware_path, new_firmware_path;  ///< set if the search path was changed
    std::string firmware_directory;  ///< where its firmware is, see install_firmware; "" for none
    std::vector<std::string> former_firmware_directories{};  ///< where firmware of it is still, as it was loaded again with another path
    bool gone = false;               ///< the module was unloaded by somebody else, and has been loaded again as a dependency of another one
    bool unloaded = false;           ///< the module is gone, only `removed_in_tree` still counts
};

/// The record of `module` where one is, and is damaged or cannot be read: its path; "" else.
[[nodiscard]] std::string damaged_record(const HostPaths& host, const std::string& module);
/// nullopt when there is none, or it is damaged.
[[nodiscard]] std::optional<LoadRecord> read_record(const HostPaths& host, const std::string& module);
/// Errors: from_errno; a caller may go on without the record.
void write_record(const HostPaths& host, const LoadRecord& record);
void erase_record(const HostPaths& host, const std::string& module);
/// Puts the kernel's firmware search path back to what it was before the module of `record` set it, if it still is what was set then.
/// Another live module whose firmware is in that directory keeps the path: then its record takes over what to put back, as that
/// of a module that set another path after this one. Errors: from_errno.
void give_up_search_path(const HostPaths& host, const LoadRecord& record);
/// Replaces what is noted of `module`, which is unloaded now: only the in-tree modules that are still to come back, nothing without any.
/// Errors: from_errno.
void note_unloaded(const HostPaths& host, const std::string& module, std::vector<std::string> removed_in_tree);
/// Those of `names`, which are about to be loaded as dependencies, that are on record and not live: somebody else has unloaded them, so they are not
/// wanted for themselves any more. Errors: from_errno.
void note_gone(const HostPaths& host, const std::vector<std::string>& names);
/// Main modules that have a record and were not unloaded since, sorted.
[[nodiscard]] std::vector<std::string> recorded_modules(const HostPaths& host);

}  // namespace kmm::kmod
