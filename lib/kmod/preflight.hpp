// SPDX-License-Identifier: Apache-2.0
// Everything that can be known about loading a set of modules without loading them.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmod/host.hpp"
#include "kmod/host_tree.hpp"
#include "kmod/module_index.hpp"

namespace kmm::kmod {

/// What is to be loaded.
struct LoadWish {
    std::string module;                       ///< main module, either spelling
    std::vector<std::string> parameters;      ///< of the main module, "key=value"
    std::vector<std::string> loading_order;   ///< KMM's modulesLoadingOrder, may be empty
    std::vector<std::string> in_tree_modules_to_remove;
};

/// How vermagic was judged.
enum class VermagicSource { module_of_the_kernel, release_only };

/// Result of the checks: the load in order, and what was found. It may be loaded if `findings` has no errors.
struct Preflight {
    LoadOrder order;
    std::vector<HostModule> host_modules;  ///< of the host's tree, to be loaded first, in order
    VermagicSource vermagic_source = VermagicSource::release_only;
    Diagnostics findings;                  ///< errors have exit `checks_failed`; sorted
};

/// Words of `wanted` and `found` vermagic that differ. The release (first word) must be equal too: the kernel itself skips
/// it when both sides have symbol versions, but an image's directory is for one kernel only.
[[nodiscard]] std::vector<std::string> vermagic_differences(const std::string& module, const std::string& kernel);

/// Checks architecture, vermagic, symbols, symbol versions, parameters, dependencies, signature and the kernel's switches.
/// `directory` of the host's modules as host_module_directory gives it, may be "". Codes: module-format, vermagic-differs,
/// unknown-symbol, symbol-version-differs, unknown-parameter, bad-parameter, dependency-missing, builtin-module,
/// no-module-support, modules-disabled, unsigned-module; warnings: symbols-not-checked, vermagic-not-checked.
/// Errors: as ModuleIndex::order.
[[nodiscard]] Preflight preflight(const ModuleIndex& index, const LoadWish& wish, const HostPaths& host);

/// Throws the errors of `findings`, if any: exit checks_failed (10), code "check-failed", all findings attached.
void require_passed(const Preflight& result, const std::string& module);

}  // namespace kmm::kmod
