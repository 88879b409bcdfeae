// SPDX-License-Identifier: Apache-2.0
// Versions of symbols, as a kernel compares them: those that a module was built with, and those of what exports them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kmod/host/module_index.hpp"

namespace kmm::kmod {

/// What a kernel does about a symbol that a module has no version of.
enum class MissingVersions {
    taken,    ///< it says so and goes on
    refused,  ///< Debian's kernels ("module: Disable matching missing version CRC")
};

/// The version of a symbol that the kernel, or a module of it, exports; nullopt if it has none, or that is not known.
using VersionOf = std::function<std::optional<std::uint32_t>(std::string_view symbol)>;

/// One module beside what exports its symbols. All lists are sorted by symbol.
struct VersionResult {
    bool none = false;                   ///< it has no versions at all: only a kernel that is forced takes it
    std::vector<std::string> of_kernel;  ///< symbols that differ from the kernel's, with both versions
    std::map<std::string, std::vector<std::string>> of_modules =
        {};  ///< the same by module of the image that exports them
    std::vector<std::string> missing;                                 ///< the exporter has a version, the module none
    std::vector<std::string> unknown;  ///< required, and the version of the kernel's is not known
    [[nodiscard]] bool fits() const noexcept {
        return !none && of_kernel.empty() && of_modules.empty() && missing.empty() && unknown.empty();
    }
};

/// Compares the version of each symbol that `file` uses, and of the pseudo symbol module_layout, with that of the
/// module of `index` that exports it, else with the kernel's. An exporter without versions is content with any. Nothing
/// is compared, and the result fits, if neither has versions. Source: Linux kernel/module/version.c, check_version().
[[nodiscard]] VersionResult compare_versions(const ModuleFile& file, const ModuleIndex& index,
                                             const VersionOf& of_kernel);

/// Tells of a result: errors "symbol-version-differs", and "symbol-version-missing", which is a warning where the
/// kernel goes on. `rebuild` says against what; `unknown` is left to the caller.
void report_versions(const ModuleFile& file, const VersionResult& result, MissingVersions rule,
                     const std::string& rebuild, Diagnostics& findings);

}  // namespace kmm::kmod
