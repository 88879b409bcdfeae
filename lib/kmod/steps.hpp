// SPDX-License-Identifier: Apache-2.0
// Single steps that loading and unloading share. Used inside this room only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "kmod/kernel_log.hpp"
#include "kmod/procedure.hpp"

namespace kmm::kmod {

/// Polls until the module is neither coming nor going, at most `patience.settle`. Returns what it then is.
/// Errors: hung (15) "loader-hung" if it still is on its way.
[[nodiscard]] std::optional<LiveModule> settled_module(const Machine& machine, const std::string& name);

/// Throws unhealthy (17) "node-unhealthy" if the kernel oopsed or locked up since `taint_before` was read.
void require_healthy(const Machine& machine, std::uint64_t taint_before, const std::string& what, KernelLog& log);

[[nodiscard]] Error hung_error(const std::string& what, const LoaderAnswer& answer, const Machine& machine, const std::string& module);
/// "module-refused" (13) with errno, cause, kernel line and hint.
[[nodiscard]] Error refused_error(const std::string& name, int error, const KernelState& state, bool is_signed, KernelLog& log);
[[nodiscard]] Error differs_error(const std::string& name, const IdentityVerdict& verdict);
/// "module-in-use" (14) with refcount and holders.
[[nodiscard]] Error busy_error(const Machine& machine, const std::string& name);

/// Unloads one module by name, waiting for its users. False if it was not live.
bool unload_one(const Machine& machine, const std::string& name);

/// Hands `bytes` of a module to the kernel, waits for it to be live and compares its identity with `file`.
/// Returns loaded, or already_loaded when somebody else loaded the same build meanwhile.
[[nodiscard]] Action load_one(const Machine& machine, const ModuleFile& file, std::string_view bytes, const std::string& parameters,
                              std::vector<std::string>& warnings);

}  // namespace kmm::kmod
