// SPDX-License-Identifier: Apache-2.0
// The verbs of kmm-plan.
#pragma once

#include "cli/app.hpp"

namespace kmm::tool_plan {

[[nodiscard]] cli::Verb show_verb();
[[nodiscard]] cli::Verb show_recipe_verb();
[[nodiscard]] cli::Verb why_verb();
[[nodiscard]] cli::Verb validate_verb();
[[nodiscard]] cli::Verb render_verb();
[[nodiscard]] cli::Verb render_chart_verb();
[[nodiscard]] cli::Verb render_recipe_verb();
[[nodiscard]] cli::Verb dtk_map_verb();
[[nodiscard]] cli::Verb graph_verb();
[[nodiscard]] cli::Verb why_recipe_verb();
[[nodiscard]] cli::Verb matrix_verb();
[[nodiscard]] cli::Verb diff_verb();
[[nodiscard]] cli::Verb upgrade_verb();
[[nodiscard]] cli::Verb explain_verb();
[[nodiscard]] cli::Verb preflight_verb();
[[nodiscard]] cli::Verb images_verb();

}  // namespace kmm::tool_plan
