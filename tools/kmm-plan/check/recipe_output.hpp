// SPDX-License-Identifier: Apache-2.0
// What kmm-plan preflight prints of recipes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "recipe/decide/upgradeable.hpp"
#include "recipe/ready/recipe_preflight.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

using recipe::ready::RecipeVerdict;

/// "pass", "fail", "unknown"; with " (known)" if all that is wrong is in the baseline.
template <typename Judged>
[[nodiscard]] std::string verdict_text(const Judged& verdict) {
    return std::string(verdict.text()) + (verdict.known ? " (known)" : "");
}
[[nodiscard]] value::Node recipe_verdict_node(const RecipeVerdict& verdict);
/// A table KERNEL RECIPE CONTAINER VERDICT CHECKED REASON; "" without verdicts. `wide` adds image and digest.
[[nodiscard]] std::string recipe_verdict_table(const std::vector<RecipeVerdict>& verdicts,
                                              const cli::Context& context);

/// What --status names; nullopt without it. Errors: usage, also without --check-images and --kernel-devel: nothing says
/// then whether images are there.
[[nodiscard]] std::optional<recipe::decide::StatusTarget> status_target(const cli::Args& args);
/// "upgradeable: true (AsExpected)", behind an empty line.
[[nodiscard]] std::string upgradeable_line(const recipe::decide::Upgradeable& upgradeable);

}  // namespace kmm::tool_plan
