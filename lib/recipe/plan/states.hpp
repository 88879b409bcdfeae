// SPDX-License-Identifier: Apache-2.0
// A chart as a recipe: states, one after another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recipe/chart/chart.hpp"

namespace kmm::recipe::plan {

inline constexpr std::string_view k_stateless = "(stateless)";

/// One run of a recipe: a chart with the helpers and some templates.
struct RecipeState {
    std::string name;          ///< "1000-driver.yaml", or k_stateless
    recipe::chart::Chart chart;
    bool affine_text = false;  ///< the text has a line with the annotation kernel-affine: what the operator goes by
};

/// Whether a file of templates/ is a state: four digits, '-' or '_', ".yaml".
[[nodiscard]] bool is_state_name(std::string_view file);

/// The states of a chart in order of their paths, then all other templates as one.
[[nodiscard]] std::vector<RecipeState> recipe_states(recipe::chart::Chart chart);

/// Adds the templates of `others` whose names `chart` does not have.
void join_templates(recipe::chart::Chart& chart, const recipe::chart::Chart& others);

/// The file of templates/ that defines a template of that name: "templates/0000-build.yaml"; "" if none does.
[[nodiscard]] std::string defining_file(const recipe::chart::Chart& chart, std::string_view defined);

}  // namespace kmm::recipe::plan
