// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/check/recipe_findings.hpp"

#include <algorithm>

namespace kmm::tool_plan {

void report_findings(Diagnostics findings, const cli::Args& args, cli::Context& context) {
    sort_and_merge(findings);
    if (args.flag("strict") && std::any_of(findings.begin(), findings.end(), [](const Diagnostic& one) { return one.severity == Severity::warning; })) {
        for (auto& finding : findings) {
            if (finding.severity == Severity::warning) { finding.severity = Severity::error; }
        }
        throw Error::from_diagnostics(std::move(findings));
    }
    if (context.verbosity < 0) { return; }
    for (const auto& finding : findings) { context.console.err(cli::diagnostic_text(finding, context.color_err)); }
}

}  // namespace kmm::tool_plan
