// SPDX-License-Identifier: Apache-2.0
// Loading and unloading as a whole: order, in-tree modules, firmware, waiting, proof of identity.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "kmod/host.hpp"
#include "kmod/load_record.hpp"
#include "kmod/loader.hpp"
#include "kmod/module_index.hpp"
#include "kmod/preflight.hpp"
#include "sys/clock.hpp"

namespace kmm::kmod {

enum class Action { load, loaded, already_loaded, unloaded, not_loaded, removed_in_tree, dependency };

/// "load", "loaded", "already-loaded", "unloaded", "not-loaded", "removed-in-tree", "dependency".
[[nodiscard]] std::string_view to_string(Action action) noexcept;

enum class Role { main, other };

/// What was, or would be, done with one module. Fields that do not apply are empty.
struct ModuleReport {
    std::string name;
    Action action = Action::load;
    Role role = Role::other;
    std::string path;  ///< inside the image, or on the host for a dependency of the host
    std::string sha256, srcversion, build_id, version, vermagic, taint;
    std::map<std::string, std::string> parameters;
};

struct Report {
    std::vector<ModuleReport> modules;  ///< in the order of the actions; the main module is last
    std::vector<std::string> warnings;
};

/// Times of a load or unload.
struct Patience {
    std::chrono::milliseconds loader{120'000};  ///< one system call, that is one init or exit function
    std::chrono::milliseconds busy{10'000};     ///< waiting for users of a module to go
    std::chrono::milliseconds settle{2'000};    ///< waiting for sysfs to show what the kernel said
};

/// Firmware of a load. `from` "" for none.
struct FirmwareWish {
    std::string from;         ///< directory on this host that holds the image's files
    std::string search_path;  ///< where they go and what the kernel's search path is set to; "" leaves the path alone
};

/// Everything a load or unload works with; all of it outlives the call.
struct Machine {
    const HostPaths& host;
    ModuleLoader& loader;
    sys::Clock& clock;
    Patience patience;
};

/// What `load_modules` would do, from the checks alone: the main module's identity as its file has it.
[[nodiscard]] Report describe(const ModuleIndex& index, const Preflight& checked, const LoadWish& wish);

/// Loads what `checked` (which must have passed) ordered. A module of the image that is live already counts as success
/// only if its identity is the file's. If a step fails, modules loaded by this call are unloaded again, newest first.
/// Errors: refused (13) "module-refused" with details errno, cause, kernel; refused "module-differs" with details loaded,
/// wanted; busy (14) "module-in-use" for an in-tree module with other users; hung (15) "loader-hung"; unhealthy (17)
/// "node-unhealthy" when the kernel oopsed; integrity (76) when a file changed since it was indexed; io.
[[nodiscard]] Report
load_modules(const ModuleIndex& index, const Preflight& checked, const LoadWish& wish, const FirmwareWish& firmware, const Machine& machine);

/// Unloads `names` (main module first, KMM's order) by name, and the dependencies that came with the main one once nobody
/// uses them. Modules that are not live are reported as such. Waits for users up to `patience.busy`.
/// Errors: busy (14) "module-in-use" with details holders, refcount; refused (13); hung (15).
[[nodiscard]] Report unload_modules(const std::vector<std::string>& names, const Machine& machine);

/// "a -> b" chains of modules that use `name`, outermost users last; "" if nobody does.
[[nodiscard]] std::string holder_chain(const HostPaths& host, const std::string& name);

}  // namespace kmm::kmod
