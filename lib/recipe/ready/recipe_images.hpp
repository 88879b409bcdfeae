// SPDX-License-Identifier: Apache-2.0
// What becomes of each driver container of a rendered recipe, with registries asked; for kmm-plan and kmm-upgrade.
#pragma once

#include <vector>

#include "cli/app.hpp"
#include "recipe/decide/decision.hpp"
#include "recipe/files/documents.hpp"
#include "recipe/plan/render.hpp"
#include "recipe/resource/facts.hpp"

namespace kmm::recipe::ready {

/// Decides what becomes of each driver container of `rendered`, which has all builds. With --check-images, registries
/// are asked; what they say is added to `findings` at the place of the template. Errors: data for an image name that no
/// registry can be asked for; those of preflight::ask_recipe_images.
[[nodiscard]] std::vector<decide::Decision> decide_recipes(const plan::RenderedRecipes& rendered,
                                                           const files::RecipeDocuments& documents,
                                                           const plan::Facts& facts, const cli::Args& args,
                                                           cli::Context& context, Diagnostics& findings);

}  // namespace kmm::recipe::ready
