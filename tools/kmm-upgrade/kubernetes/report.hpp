// SPDX-License-Identifier: Apache-2.0
// Results of checks, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kubernetes/check/checks.hpp"
#include "report/formats.hpp"

namespace kmm::tool_upgrade {

/// Prints a document of `kind`, or lines for people. `failed` if a check fails, else ok.
[[nodiscard]] Exit print_check_results(cli::Context& context, const char* kind, const kubernetes::CheckInput& input,
                                       const std::vector<kubernetes::CheckResult>& results, Exit failed);

/// The files of --report, which names `verb` as what was run: each failed check an error, each warning one. `dumps` are
/// the files that were read in place of a cluster.
void write_check_reports(const report::Files& files, cli::Context& context, const char* verb,
                         const std::vector<std::string>& dumps,
                         const std::vector<kubernetes::CheckResult>& results);

}  // namespace kmm::tool_upgrade
