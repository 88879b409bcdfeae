// SPDX-License-Identifier: Apache-2.0
// Order between Modules, by the annotation kmmtools.dev/needs. No operator has it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"

namespace kmm::plan {

/// "NAMESPACE/NAME, ...": the Modules that must be loaded before this one, and unloaded after it.
inline constexpr std::string_view k_annotation_needs = "kmmtools.dev/needs";

/// The names in the Module's annotation, in its order, as written; empty if it has none.
[[nodiscard]] std::vector<std::string> needs(const api::Module& module);

/// Rank of each Module by "NAMESPACE/NAME": 0 for one that needs nothing, else one more than the highest rank it needs.
/// Names that were not read have no rank; what is on a cycle is ranked as if its needs were not there. O(Modules +
/// needs).
[[nodiscard]] std::map<std::string, std::size_t> load_order(const std::vector<api::Module>& modules);

/// Reports bad-needs (no NAMESPACE/NAME, or named twice), needs-unknown (a Module that was not read, a warning) and
/// needs-cycle with the path of the cycle, once a cycle.
void check_needs(const std::vector<api::Module>& modules, Diagnostics& diagnostics);

}  // namespace kmm::plan
