// SPDX-License-Identifier: Apache-2.0
// --report, --ci, --fail-on and --baseline, for every verb that checks something.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "report/baseline.hpp"
#include "report/formats.hpp"
#include "report/metrics.hpp"
#include "report/report.hpp"

namespace kmm::tool_plan {

/// Whether a verb finds that the cluster is not what the plan says. Such findings are errors.
enum class Drift { not_looked_for, found };

/// The four options.
[[nodiscard]] std::vector<cli::Option> report_options(Drift drift = Drift::not_looked_for);

/// --metrics.
[[nodiscard]] cli::Option metrics_option();
/// --metrics-cluster NAME, beside --metrics.
[[nodiscard]] cli::Option metrics_cluster_option();
/// Writes the families to the file of --metrics as a whole, if it is given. Errors: io.
void write_metrics(const cli::Args& args, cli::Context& context, const std::vector<report::MetricFamily>& families);

/// What a verb does with its findings:
///     Reporting reporting(args);                         // refuses bad options before anything is read
///     ... collect findings ...
///     reporting.forget_known(findings);
///     reporting.publish("validate", files, findings, context);
///     if (reporting.failed(findings)) { throw reporting.failure(findings); }
class Reporting {
public:
    /// Errors: usage "bad-value" for --report; from_errno and data "bad-baseline" for --baseline.
    explicit Reporting(const cli::Args& args);

    /// Removes the findings of the baseline and counts them.
    void forget_known(Diagnostics& findings);
    /// How many forget_known removed; nullopt without --baseline.
    [[nodiscard]] std::optional<std::size_t> known() const noexcept { return known_; }

    /// Writes the files of --report and what --ci asks for. GitHub's commands go to standard output, or to standard
    /// error if the result there is for machines. Errors: io.
    void publish(const std::string& check, const std::vector<std::string>& files, const Diagnostics& findings,
                 cli::Context& context) const;

    /// True if a finding fails the check.
    [[nodiscard]] bool failed(const Diagnostics& findings) const noexcept;
    /// The error for a failed check: exit data, or not_found if files are missing. All findings are attached.
    [[nodiscard]] Error failure(Diagnostics findings) const;

private:
    report::Files files_;
    std::set<std::string> by_program_;  ///< formats whose file nobody asked for
    std::string ci_;                            ///< github, gitlab or none
    Severity fail_on_ = Severity::error;
    std::optional<report::Baseline> baseline_;
    std::optional<std::size_t> known_;
};

}  // namespace kmm::tool_plan
