// SPDX-License-Identifier: Apache-2.0
// Single steps that loading, unloading and `run` share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/load/kernel_log.hpp"
#include "kmod/load/procedure.hpp"

namespace kmm::kmod {

/// Polls until the module is neither coming nor going, at most `patience.settle`. Returns what it then is.
/// Errors: hung (15) "loader-hung" if it still is on its way.
[[nodiscard]] std::optional<LiveModule> settled_module(const Machine& machine, const std::string& name);

/// What is being done with a module, and the helper process that does it, 0 for none.
struct Deed {
    std::string what;
    const std::string& module;
    long helper = 0;
};

/// Throws unhealthy (17) "node-unhealthy" if the kernel oopsed, locked up or warned since `taint_before` was read. A
/// kernel that had done so before gets no new taint, and of one whose taint cannot be read none is seen: then it is
/// what it logged of the module or of the helper.
void require_healthy(const Machine& machine, std::uint64_t taint_before, const Deed& deed, KernelLog& log);

/// Warns ("health-not-checked") if faults of the kernel could not have been seen since `taint_before` was read: for
/// want of its taint and its log.
void warn_of_unwatched(const HostPaths& host, std::uint64_t taint_before, std::vector<std::string>& warnings);

[[nodiscard]] Error hung_error(const std::string& what, const LoaderAnswer& answer, const Machine& machine,
                               const std::string& module);
/// A module on its way into the kernel.
struct Candidate {
    const ModuleFile& file;
    std::string_view bytes;  ///< the plain object
    std::string parameters;  ///< as the kernel gets them
    Force force = {};
};

/// "module-refused" (13) with errno, cause, what was tested, kernel lines and hint.
[[nodiscard]] Error refused_error(const Machine& machine, const Candidate& candidate, int error,
                                  const KernelState& state, KernelLog& log);
[[nodiscard]] Error differs_error(const std::string& name, const IdentityVerdict& verdict);
/// "module-in-use" (14) with refcount, holders and the users that were found.
[[nodiscard]] Error busy_error(const Machine& machine, const std::string& name);

/// "module-in-use" (14) of a module that has no exit function, or, where that is not `sure`, is being loaded.
[[nodiscard]] Error permanent_error(const std::string& name, bool sure = true);

/// Unloads one module by name, waiting for its users. False if it was not live.
bool unload_one(const Machine& machine, const std::string& name, const Force& force = {});

/// Hands a module to the kernel, waits for it to be live and compares its identity with the file.
/// Returns loaded, or already_loaded when somebody else loaded the same build meanwhile.
[[nodiscard]] Action load_one(const Machine& machine, const Candidate& candidate, std::vector<std::string>& warnings);

/// Unloads `name` if it is a leftover (see load_record.hpp) that nobody uses any more; nullopt if it is none, or stays.
[[nodiscard]] std::optional<ModuleReport> unload_leftover(const Machine& machine, const std::string& name);

/// Warns ("parameter-differs") of parameters that are live with another value than `wanted`; `was_live` before this
/// load.
void warn_of_parameters(const Machine& machine, const ModuleFile& file,
                        const std::map<std::string, GivenParameter>& wanted, bool was_live,
                        std::vector<std::string>& warnings);

/// What its file says of a module.
[[nodiscard]] ModuleReport report_of(const IndexedModule& module, Action action);
/// Adds what a module is loaded with: the host's options for it, and `own`.
void add_parameters(ModuleReport& report, const ModprobeConfig& config, const ModuleFile& module,
                    const std::vector<std::string>& own);

/// A module of the host's tree that was loaded: what is told of it, and whether this call did it (loaded or
/// already_loaded).
struct HostLoad {
    ModuleReport report;
    Action outcome;
};

/// Loads one module file of the host's tree, with the host's options. `shown` is the action of its report. Errors:
/// those of load_one; io, data.
[[nodiscard]] HostLoad load_host_file(const Machine& machine, const ModprobeConfig& config, const std::string& path,
                                      Action shown, std::vector<std::string>& warnings);

/// Loads `name` and what it needs from the host's own tree, with the host's options. What was loaded is added to the
/// modules of `report`, `name` with `action`. Returns why that does not work, nullopt if it does. Errors: hung (15),
/// unhealthy (17).
[[nodiscard]] std::optional<std::string> load_from_host(const Machine& machine, const std::string& name, Action action,
                                                        Report& report);
/// The same with a configuration that is read already.
[[nodiscard]] std::optional<std::string> load_from_host(const Machine& machine, const std::string& name, Action action,
                                                        Report& report, ModprobeConfig config);

/// True if `name` is on the request's list of in-tree modules that give way.
[[nodiscard]] bool listed_for_removal(const LoadRequest& request, const std::string& name);

/// Live modules of the request's removal list, but for those of `same`, users before what they use. Changes nothing.
/// Errors: those of permanent_error() and busy_error(); refused (13) "not-in-tree" for one that this tool has loaded.
[[nodiscard]] std::vector<std::string> removal_order(const Machine& machine, const LoadRequest& request,
                                                     const std::map<std::string, std::string>& same,
                                                     std::vector<std::string>& warnings);

/// What take_second_look() is about.
struct SecondLook {
    const std::string& main;                 ///< the module that the load is about
    const std::vector<std::string>& loaded;  ///< by this load, in order
    std::uint64_t taint_before;
};

/// Waits `patience.second_look`, then compares everything that was loaded again: udev may load another build of the
/// same name, or a module may go wrong after its init has returned. Errors: refused (13) "module-replaced"; unhealthy
/// (17).
void take_second_look(const Machine& machine, const ModuleIndex& index, const SecondLook& look,
                      std::vector<std::string>& warnings);

/// The message of `error`, after what was being done.
[[nodiscard]] std::string message_in_context(const Error& error);

}  // namespace kmm::kmod
