// SPDX-License-Identifier: Apache-2.0
// What a recipe consists of, for people.
#pragma once

#include <span>
#include <string>

#include "recipe/plan/render.hpp"
#include "value/node.hpp"

namespace kmm::recipe::decide {

/// The page of `kmm-plan why recipe`. `rendered` is of `name`, with all builds. Errors: those of apply_waves and
/// select_kernels.
[[nodiscard]] std::string why_text(std::span<const plan::SpecialResource> all, const std::string& name,
                                   const plan::Facts& facts, const plan::RenderedRecipes& rendered);

/// The same as a document: {"apiVersion", "kind": "RecipeWhy", "name", "wave", "needs", "namespace", "chart",
/// "kernels", "objects"}.
[[nodiscard]] value::Node why_node(std::span<const plan::SpecialResource> all, const std::string& name,
                                   const plan::Facts& facts, const plan::RenderedRecipes& rendered);

}  // namespace kmm::recipe::decide
