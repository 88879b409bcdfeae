// SPDX-License-Identifier: Apache-2.0
// What kmm-plan preflight prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-plan/source/images.hpp"
#include "kmm-plan/check/recipe_preflight.hpp"
#include "kmm-plan/source/source.hpp"
#include "plan/survey.hpp"
#include "recipe/decide/upgradeable.hpp"
#include "report/metrics.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// How far a check went.
enum class Checked { mapping, image, modules };

/// One line of the answer: a pool of nodes (or none) for one kernel and Module.
struct Verdict {
    const plan::Surveyed* surveyed = nullptr;
    const plan::Pool* pool = nullptr;
    const plan::Resolved* resolved = nullptr;
    std::optional<ImageQuestion> question;
    Checked checked = Checked::mapping;
    std::string digest;
    std::vector<SignedFile> files;
    std::size_t symbols = 0;  ///< that do not fit
    Diagnostics findings;

    bool unknown = false;  ///< the registry could not be asked

    [[nodiscard]] bool failed() const { return !unknown && has_errors(findings); }
    [[nodiscard]] std::string_view text() const { return unknown ? "unknown" : failed() ? "fail" : "pass"; }
    /// A code: of the worst finding, else of the mapping; "-" if there is none.
    [[nodiscard]] std::string reason() const;
};

/// One answer for the cluster. A Module whose mapping alone was checked is not ready: nobody knows whether its image is there.
[[nodiscard]] recipe::decide::Upgradeable judge_all(const std::vector<Verdict>& verdicts, const std::vector<RecipeVerdict>& recipes);
[[nodiscard]] value::Node verdict_node(const Verdict& verdict);
/// The document of kind Preflight.
[[nodiscard]] value::Node preflight_node(const Source& source, const std::vector<Verdict>& verdicts, const std::vector<RecipeVerdict>& recipes);
/// What would not survive, or could not be found out: kernel and Module, each once.
[[nodiscard]] std::string losing_names(const std::vector<Verdict>& verdicts);
[[nodiscard]] std::string verdict_table(const std::vector<Verdict>& verdicts, const cli::Context& context);
/// Who signed which file: each file of each image once.
[[nodiscard]] std::string signature_lines(const std::vector<Verdict>& verdicts);
/// Findings once each, although several pools share them; then who would lose what.
[[nodiscard]] std::string explanation(const std::vector<Verdict>& verdicts, const Diagnostics& findings, bool color);
[[nodiscard]] std::vector<report::MetricFamily> preflight_metrics(const std::vector<Verdict>& verdicts, const std::vector<RecipeVerdict>& recipes);

}  // namespace kmm::tool_plan
