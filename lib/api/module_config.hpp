// SPDX-License-Identifier: Apache-2.0
// What fields of a ModuleConfig mean together, as KMM's worker reads them.
#pragma once

#include <string>
#include <vector>

#include "api/types.hpp"

namespace kmm::api {

/// The field that says which in-tree modules are removed before the load: the deprecated "inTreeModuleToRemove" counts
/// only where there is no list.
[[nodiscard]] const char* in_tree_field(const ModuleConfig& config) noexcept;

/// The names in that field, in the order of the document.
[[nodiscard]] std::vector<std::string> in_tree_removals(const ModuleConfig& config);

/// Whether rawArgs stand in the place of moduleName, parameters, args and modulesLoadingOrder: one of both commands
/// is enough, and then the other one is missing.
[[nodiscard]] bool has_raw_arguments(const ModprobeSpec& modprobe) noexcept;

}  // namespace kmm::api
