// SPDX-License-Identifier: Apache-2.0
#include "recipe/files/findings.hpp"

#include <algorithm>

namespace kmm::recipe::files {

void report_findings(Diagnostics findings, const cli::Args& args, cli::Context& context) {
    sort_and_merge(findings);
    if (args.flag("strict") && std::any_of(findings.begin(), findings.end(),
                                           [](const Diagnostic& one) { return one.severity == Severity::warning; })) {
        for (auto& finding : findings) {
            if (finding.severity == Severity::warning) { finding.severity = Severity::error; }
        }
        throw Error::from_diagnostics(std::move(findings));
    }
    if (context.verbosity < 0) { return; }
    for (const auto& finding : findings) { context.console.err(cli::diagnostic_text(finding, context.color_err)); }
}

}  // namespace kmm::recipe::files
