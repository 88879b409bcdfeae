// SPDX-License-Identifier: Apache-2.0
// Which recipe needs which.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "recipe/resource/resource.hpp"

namespace kmm::recipe::plan {

/// The resource of that name; nullptr if it is no document.
[[nodiscard]] const SpecialResource* find_resource(std::span<const SpecialResource> all, std::string_view name);

/// `names`, or all, and what they depend on, at any depth: each once, behind its dependencies, which come in the order
/// in which they are listed. Dependencies that are no documents are among them. Errors: not_found "recipe-not-found",
/// data "dependency-cycle" that names the path.
[[nodiscard]] std::vector<std::string> apply_order(std::span<const SpecialResource> all,
                                                   const std::vector<std::string>& names);

/// The same as waves: the resources of one need those of waves before it only. Sorted by name within a wave.
[[nodiscard]] std::vector<std::vector<std::string>> apply_waves(std::span<const SpecialResource> all,
                                                                const std::vector<std::string>& names);

enum class GraphForm { text, dot, mermaid };
/// The graph of apply_waves, arrows from a resource to what it needs.
[[nodiscard]] std::string graph_text(std::span<const SpecialResource> all, const std::vector<std::string>& names,
                                     GraphForm form);

}  // namespace kmm::recipe::plan
