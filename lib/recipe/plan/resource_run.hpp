// SPDX-License-Identifier: Apache-2.0
// One resource and its chart: states, copies for kernels, everything else. Internal to this room.
#pragma once

#include "recipe/plan/render.hpp"
#include "recipe/resource/release_kinds.hpp"

namespace kmm::recipe::plan {

/// Appends the objects of `resource` to `out`, its namespace first. Errors: those of render_recipes.
void render_resource(const SpecialResource& resource, chart::Chart chart, const Facts& facts,
                     const RenderOptions& options, RenderedRecipes& out);

/// The same of a SpecialResourceModule, for each release in their order.
void render_module(const SpecialResourceModule& module, const std::vector<Release>& releases, chart::Chart chart,
                   const Facts& facts, const RenderOptions& options, RenderedRecipes& out);

}  // namespace kmm::recipe::plan
