// SPDX-License-Identifier: Apache-2.0
// Recipes as the verbs about them work with them: rendered, and decided.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-plan/render/recipe_files.hpp"
#include "recipe/decide/decision.hpp"
#include "recipe/plan/render.hpp"

namespace kmm::tool_plan {

/// -f, --chart, --facts and --fact.
[[nodiscard]] std::vector<cli::Option> recipe_sources();
[[nodiscard]] cli::Option recipe_option(std::string name, std::string value_name, std::string help, bool repeatable = false);

/// Errors: not_found "recipe-not-found" if no document is a SpecialResource or SpecialResourceModule.
void require_resources(const RecipeDocuments& documents);

/// Renders `names`, or all. Errors: those of recipe::plan::render_recipes.
[[nodiscard]] recipe::plan::RenderedRecipes render_named(const cli::Args& args, const RecipeDocuments& documents, const recipe::plan::Facts& facts,
                                                         const std::vector<std::string>& names, bool all_builds);

/// The architecture of a kernel's machines as images name it, by its release; "" if the release does not say it.
[[nodiscard]] std::string image_architecture(const std::string& kernel);

/// Decides what becomes of each driver container of `rendered`, which has all builds. With --check-images, registries are asked; what they say
/// is added to `findings` at the place of the template.
[[nodiscard]] std::vector<recipe::decide::Decision> decide_recipes(const recipe::plan::RenderedRecipes& rendered, const RecipeDocuments& documents,
                                                                   const recipe::plan::Facts& facts, const cli::Args& args, cli::Context& context, Diagnostics& findings);

}  // namespace kmm::tool_plan
