// SPDX-License-Identifier: Apache-2.0
// Findings of rendered charts and recipes.
#pragma once

#include "base/error.hpp"
#include "cli/app.hpp"

namespace kmm::recipe::files {

/// Prints findings on standard error, unless -q. Error: data with all warnings as errors, if --strict is given and
/// there is one.
void report_findings(Diagnostics findings, const cli::Args& args, cli::Context& context);

}  // namespace kmm::recipe::files
