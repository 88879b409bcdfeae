// SPDX-License-Identifier: Apache-2.0
// Recipes that come with the program.
#pragma once

#include "recipe/chart/chart.hpp"

namespace kmm::recipe::plan {

/// The chart of resources without one: manifests/recipes/driver-container.
[[nodiscard]] recipe::chart::Chart built_in_recipe();

}  // namespace kmm::recipe::plan
