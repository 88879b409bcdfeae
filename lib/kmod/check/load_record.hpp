// SPDX-License-Identifier: Apache-2.0
// What this tool loaded since the last boot: which dependencies came with a module, and what to put back at unload.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kmod/host/firmware.hpp"
#include "kmod/host/host.hpp"

namespace kmm::kmod {

/// Kept in <run>/loaded/<module> until unload or reboot, and after an unload while in-tree modules have not come back
/// or modules that came with it are in use by others. A help, not a truth: sysfs decides what is live.
struct LoadRecord {
    std::string module;                         ///< main module
    /// Modules of the image and of the host that this tool loaded for it, or for another module before, in load order.
    /// A module that is in several records is shared: the last user takes it away. Of a module that is unloaded: those
    /// that were in use still.
    std::vector<std::string> dependencies;
    std::vector<std::string> removed_in_tree;   ///< in-tree modules that were unloaded for it
    std::optional<std::string> old_firmware_path, new_firmware_path;  ///< set if the search path was changed
    std::string former_firmware_path{};  ///< what was set for it before: in force until the new one is; "" for none
    std::string firmware_directory;  ///< where its firmware is, see install_firmware; "" for none
    std::vector<std::string>
        former_firmware_directories{};  ///< where firmware of it is still, as it was loaded again with another path
    bool gone =
        false;  ///< the module was unloaded by somebody else, and has been loaded again as a dependency of another one
    bool unloaded = false;           ///< the module is gone, only `removed_in_tree` and `dependencies` still count
    /// By module: the devices that appeared while it was loaded, "char 240" for all of a major, "block 253:1" for one.
    std::map<std::string, std::vector<std::string>> devices{};
};

/// Whether the firmware search path `path` is one that was set for the module.
[[nodiscard]] bool is_set_by(const LoadRecord& record, const std::string& path);
/// The record of `module` where one is, and is damaged or cannot be read: its path; "" else.
[[nodiscard]] std::string damaged_record(const HostPaths& host, const std::string& module);
/// nullopt when there is none, or it is damaged.
[[nodiscard]] std::optional<LoadRecord> read_record(const HostPaths& host, const std::string& module);
/// Errors: from_errno; a caller may go on without the record.
void write_record(const HostPaths& host, const LoadRecord& record);
void erase_record(const HostPaths& host, const std::string& module);
/// Puts the kernel's firmware search path back to what it was before the module of `record` set it, if it still is what
/// was set then. Another live module whose firmware is in that directory keeps the path: then its record takes over
/// what to put back, as that of a module that set another path after this one. Errors: from_errno.
void give_up_search_path(const HostPaths& host, const LoadRecord& record);
/// Replaces what is noted of `module`, which is unloaded now: only the in-tree modules that are still to come back, and
/// the modules that came with it and stay as others use them; nothing without any. Errors: from_errno.
void note_unloaded(const HostPaths& host, const std::string& module, std::vector<std::string> removed_in_tree,
                   std::vector<std::string> left_behind);
/// Those of `names`, which are about to be loaded as dependencies, that are on record and not live: somebody else has
/// unloaded them, so they are not wanted for themselves any more. Errors: from_errno.
void note_gone(const HostPaths& host, const std::vector<std::string>& names);
/// Main modules that have a record and were not unloaded since, sorted.
[[nodiscard]] std::vector<std::string> recorded_modules(const HostPaths& host);
/// Every record, also of modules that are unloaded, sorted by module.
[[nodiscard]] std::vector<LoadRecord> all_records(const HostPaths& host);
/// Whether this tool loaded `name` for another module than `name` and `except`, as far as is on record.
[[nodiscard]] bool came_as_dependency(const HostPaths& host, const std::string& name, const std::string& except);
/// The module for whose load this tool brought the live `module`: itself, or one that an out-of-tree `module`
/// came with as a dependency; "" where none but the load of `except` did, as far as is on record.
[[nodiscard]] std::string owner_on_record(const HostPaths& host, const LiveModule& module, const std::string& except);
/// What modules on record need that are live and not in `leaving`: those modules themselves, and what they came with.
[[nodiscard]] std::set<std::string> wanted_on_record(const HostPaths& host, const std::vector<std::string>& leaving);
/// Live out-of-tree modules that came with modules that are not live any more, and that no module on record needs;
/// newest first.
[[nodiscard]] std::vector<std::string> leftovers(const HostPaths& host);
/// Forgets leftovers that are gone. Errors: from_errno.
void forget_gone_leftovers(const HostPaths& host);

}  // namespace kmm::kmod
