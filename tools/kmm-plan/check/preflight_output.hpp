// SPDX-License-Identifier: Apache-2.0
// What kmm-plan preflight prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-plan/source/source.hpp"
#include "preflight/verdict.hpp"
#include "recipe/decide/upgradeable.hpp"
#include "recipe/ready/recipe_preflight.hpp"
#include "report/metrics.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

using preflight::Verdict;
using recipe::ready::RecipeVerdict;

/// One answer for the cluster. A Module whose mapping alone was checked is not ready: nobody knows whether its image is
/// there.
[[nodiscard]] recipe::decide::Upgradeable judge_all(const std::vector<Verdict>& verdicts,
                                                    const std::vector<RecipeVerdict>& recipes);
[[nodiscard]] value::Node verdict_node(const Verdict& verdict);
/// The document of kind Preflight. `upgradeable`: nullopt of a choice of Modules or nodes.
[[nodiscard]] value::Node preflight_node(const Source& source, const std::vector<Verdict>& verdicts,
                                         const std::vector<RecipeVerdict>& recipes,
                                         const std::optional<recipe::decide::Upgradeable>& upgradeable);
/// What would not survive, or could not be found out, and is not known: kernel and Module, each once.
[[nodiscard]] std::string losing_names(const std::vector<Verdict>& verdicts);
[[nodiscard]] std::string verdict_table(const std::vector<Verdict>& verdicts, const cli::Context& context);
/// Who signed which file: each file of each image once.
[[nodiscard]] std::string signature_lines(const std::vector<Verdict>& verdicts);
/// Findings once each, although several pools share them; then who would lose what.
[[nodiscard]] std::string explanation(const std::vector<Verdict>& verdicts, const Diagnostics& findings, bool color);
[[nodiscard]] std::vector<report::MetricFamily> preflight_metrics(
    const std::vector<Verdict>& verdicts, const std::vector<RecipeVerdict>& recipes,
    const std::optional<recipe::decide::Upgradeable>& upgradeable);

}  // namespace kmm::tool_plan
