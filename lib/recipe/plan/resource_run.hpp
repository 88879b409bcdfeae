// SPDX-License-Identifier: Apache-2.0
// One resource and its chart: states, copies for kernels, everything else. Internal to this room.
#pragma once

#include "recipe/plan/render.hpp"

namespace kmm::recipe::plan {

/// Appends the objects of `resource` to `out`, its namespace first. Errors: those of render_recipes.
void render_resource(const SpecialResource& resource, chart::Chart chart, const Facts& facts, const RenderOptions& options, RenderedRecipes& out);

}  // namespace kmm::recipe::plan
