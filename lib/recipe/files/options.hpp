// SPDX-License-Identifier: Apache-2.0
// The command line of verbs that render recipes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "recipe/files/documents.hpp"
#include "recipe/plan/render.hpp"

namespace kmm::recipe::files {

/// --ignore.
[[nodiscard]] cli::Option ignore_option();

/// -f, --ignore, --chart, --facts and --fact.
[[nodiscard]] std::vector<cli::Option> recipe_sources();

/// Errors: not_found "recipe-not-found" if no document is a SpecialResource or SpecialResourceModule.
void require_resources(const RecipeDocuments& documents);

/// Errors: those of recipe::plan::apply_order for names that no document has.
void require_named(const RecipeDocuments& documents, const std::vector<std::string>& names);

/// Renders `names`, or all. `versions` gets the version of each resource: its chart's, or its own. Errors: those of
/// recipe::plan::render_recipes.
[[nodiscard]] recipe::plan::RenderedRecipes render_named(const cli::Args& args, const RecipeDocuments& documents,
                                                         const recipe::plan::Facts& facts,
                                                         const std::vector<std::string>& names, bool all_builds,
                                                         std::map<std::string, std::string>* versions = nullptr);

}  // namespace kmm::recipe::files
