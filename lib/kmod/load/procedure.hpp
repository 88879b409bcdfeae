// SPDX-License-Identifier: Apache-2.0
// Loading and unloading as a whole: order, in-tree modules, firmware, waiting, proof of identity.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/check/preflight.hpp"
#include "kmod/host/firmware.hpp"
#include "kmod/host/host.hpp"
#include "kmod/host/module_index.hpp"
#include "kmod/load/loader.hpp"
#include "sys/clock.hpp"

namespace kmm::kmod {

enum class Action { load, loaded, already_loaded, unloaded, not_loaded, removed_in_tree, dependency, kept, restored };

/// "load", "loaded", "already-loaded", "unloaded", "not-loaded", "removed-in-tree", "dependency", "kept", "restored".
[[nodiscard]] std::string_view to_string(Action action) noexcept;

enum class Role { main, other };

/// What was, or would be, done with one module. Fields that do not apply are empty.
struct ModuleReport {
    std::string name;
    Action action = Action::load;
    Role role = Role::other;
    std::string path;  ///< inside the image, or on the host for a dependency of the host
    std::string sha256, srcversion, build_id, version, vermagic, taint, signer;
    std::vector<ModuleSignature> other_signers = {};  ///< of a signature that several have made
    std::string same_by = {};  ///< of a module that is live already: which property says that it is this one, see
                               ///< same_by(); "" if none does
    std::chrono::milliseconds took{0};  ///< the load or unload of this module
    std::map<std::string, std::string> parameters;         ///< that it is loaded with
    std::map<std::string, std::string>
        parameter_origins;  ///< of those that the host adds: where, "/etc/modprobe.d/a.conf:3"
};

/// An in-tree module that did not come back, and why.
struct NotRestored {
    std::string name;
    std::string reason;
};

struct Report {
    std::vector<ModuleReport> modules;  ///< in the order of the actions; the main module is last
    std::vector<std::string> warnings;
    std::string new_taint;  ///< what the kernel got during this run: "OE, bit 31"
    std::vector<NotRestored>
        not_restored;  ///< in-tree modules that were to come back and did not; `warnings` say it, too
};

/// Warnings of a report ("code: text") as findings.
[[nodiscard]] Diagnostics warnings_as_findings(const std::vector<std::string>& warnings);
/// Attaches those of `warnings` that have the severity warning and are not there yet, with the same text or the
/// beginning of it: an error must not hide them.
void add_warnings(Error& error, Diagnostics warnings);

/// Times of a load or unload.
struct Patience {
    std::chrono::milliseconds loader{120'000};  ///< one system call, that is one init or exit function
    std::chrono::milliseconds busy{10'000};     ///< waiting for users of a module to go
    std::chrono::milliseconds settle{2'000};    ///< waiting for sysfs to show what the kernel said
    std::chrono::milliseconds second_look{2'000};  ///< after a load, until the identity is compared again; 0 for never
};

/// Firmware of a load. `from` "" for none.
struct FirmwareRequest {
    std::string from;         ///< directory on this host that holds the image's files
    std::string search_path;  ///< where they go and what the kernel's search path is set to; "" leaves the path alone
    FileDigests digests{};    ///< of the image's files, as they were proven
};

/// Everything a load or unload works with; all of it outlives the call.
struct Machine {
    const HostPaths& host;
    ModuleLoader& loader;
    sys::Clock& clock;
    Patience patience;
};

/// What `load_modules` would do, from the checks alone: the main module's identity as its file has it, and which
/// modules are live already. Errors: of judge_identity.
[[nodiscard]] Report describe(const ModuleIndex& index, const Preflight& checked, const LoadRequest& request,
                              const HostPaths& host);

/// What becomes of modules at unload.
enum class UnloadPolicy {
    always,   ///< unload; in use after the waiting is an error
    if_idle,  ///< unload if nobody uses them right now, else leave them as they are
    never     ///< leave them as they are: gone with the next reboot
};
/// Whether in-tree modules that gave way at load come back.
enum class InTree { stay_unloaded, restore };

struct UnloadRequest {
    std::vector<std::string> names;  ///< main module first, KMM's order
    UnloadPolicy policy = UnloadPolicy::always;
    InTree in_tree = InTree::stay_unloaded;
    std::string firmware_directory = {};  ///< where firmware is when no record tells (after a reboot), "" for nowhere
    Force force = {};
    bool holders_too = false;  ///< modules that use these are unloaded first (modprobe --remove-holders)
    std::vector<ImageConfigFile> image_config = {};  ///< of the image's modprobedDir, where it is at hand
};

/// Loads what `checked` (which must have passed) ordered. A module of the image that is live already counts as success
/// only if its identity is the file's. If a step fails, modules loaded by this call are unloaded again, newest first;
/// what only a softdep asks for is left out instead, with a warning, as modprobe does. Errors: refused (13)
/// "module-refused" with details errno, cause, kernel; refused "module-differs" with details loaded, wanted; busy (14)
/// "module-in-use" for an in-tree module with other users; hung (15) "loader-hung"; unhealthy (17) "node-unhealthy"
/// when the kernel oopsed, locked up or warned; integrity (76) when a file changed since it was indexed; io.
/// `patience.second_look` later everything must still be live as it was: else refused "module-replaced".
[[nodiscard]] Report load_modules(const ModuleIndex& index, const Preflight& checked, const LoadRequest& request,
                                  const FirmwareRequest& firmware, const Machine& machine);

/// Unloads the requested modules by name, and the dependencies that came with the main one once nobody uses them; gives
/// up its firmware. Modules that are not live are reported as such. Waits for users up to `patience.busy`. Errors: busy
/// (14) "module-in-use" with details holders, refcount, users; refused (13); hung (15).
[[nodiscard]] Report unload_modules(const UnloadRequest& request, const Machine& machine);

/// "a -> b" chains of modules that use `name`, outermost users last; "" if nobody does.
[[nodiscard]] std::string holder_chain(const HostPaths& host, const std::string& name);

}  // namespace kmm::kmod
