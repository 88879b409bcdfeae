// SPDX-License-Identifier: Apache-2.0
// Recipes as the verbs about them work with them: rendered, and decided.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "recipe/decide/decision.hpp"
#include "recipe/files/findings.hpp"
#include "recipe/files/options.hpp"
#include "recipe/plan/render.hpp"
#include "recipe/ready/recipe_images.hpp"

namespace kmm::tool_plan {

using recipe::files::read_document_file;
using recipe::files::read_facts;
using recipe::files::read_recipe_documents;
using recipe::files::recipe_sources;
using recipe::files::RecipeDocuments;
using recipe::files::render_named;
using recipe::files::report_findings;
using recipe::files::require_resources;
using recipe::ready::decide_recipes;

}  // namespace kmm::tool_plan
