// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/check/reporting.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "plan/codes/codes.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "value/reader.hpp"

namespace kmm::tool_plan {

namespace {

constexpr unsigned k_report_mode = 0644;
constexpr std::string_view k_gitlab_code_quality = "gl-code-quality-report.json";
constexpr std::string_view k_gitlab_junit = "gl-junit-report.xml";

std::string variable(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? std::string() : std::string(text);
}

std::string detect_ci(const std::string& asked) {
    if (asked != "auto") { return asked; }
    if (variable("GITHUB_ACTIONS") == "true") { return "github"; }
    return variable("GITLAB_CI") == "true" ? "gitlab" : "none";
}

report::Baseline read_baseline(const std::string& file) {
    return with_context([] { return std::string("reading the baseline"); }, [&] {
        Diagnostics faults;
        const auto documents = value::read_any(file == "-" ? sys::read_fd(0, "-") : sys::read_file(file), file, faults);
        if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
        if (documents.size() != 1) {
            throw Error(Exit::data, "bad-baseline", fmt::format("expected one document, found {}", documents.size()))
                .at(Position{file, 0, 0})
                .hint("a baseline is what the command printed with -o json");
        }
        return report::Baseline::from_document(documents.front());
    });
}

/// Appends to a file that the CI system has made for us.
void append_text(const std::string& file, const std::string& text) {
    with_context([&] { return fmt::format("writing {}", base::escape(file)); }, [&] {
        const sys::Fd fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, k_report_mode));
        if (fd.get() < 0) { throw LastErrno().error("opening it"); }
        sys::LinuxFileOps().write(fd.get(), text);
    });
}

void publish_github(const report::Report& report, bool failed, cli::Context& context) {
    const std::string commands = report::to_github(report);
    context.console.ci_commands(commands, cli::document_form(context).has_value());
    if (const std::string file = variable("GITHUB_STEP_SUMMARY"); !file.empty()) {
        append_text(file, report::to_markdown(report));
    }
    if (const std::string file = variable("GITHUB_OUTPUT"); !file.empty()) {
        append_text(file,
                    fmt::format("errors={}\nwarnings={}\nresult={}\n", report::count(report.findings, Severity::error),
                                report::count(report.findings, Severity::warning), failed ? "failed" : "passed"));
    }
}

}  // namespace

std::vector<cli::Option> report_options(Drift drift) {
    auto reports = cli::repeatable(
        cli::option("report", "FORMAT=FILE,...", "write reports: " + base::join(report::format_names(), ", ")));
    auto ci = cli::with_default(
        cli::with_choices(cli::option("ci", "SYSTEM", "write annotations and files for this CI system"),
                          {"auto", "github", "gitlab", "none"}),
        "auto");
    auto fail_on =
        cli::with_choices(cli::option("fail-on", "SEVERITY", "lowest severity that fails"), {"error", "warning"});
    if (drift == Drift::found) { fail_on.choices.emplace_back("drift"); }
    fail_on.default_text = "error";
    return {reports, ci, fail_on,
            cli::option("baseline", "FILE", "earlier result (-o json) whose findings are ignored")};
}

Reporting::Reporting(const cli::Args& args)
    : files_(report::parse_files(args.all("report"))), ci_(detect_ci(args.get("ci").value_or("auto"))) {
    if (ci_ == "gitlab") {
        if (files_.emplace("codequality", k_gitlab_code_quality).second) { by_program_.insert("codequality"); }
        if (files_.emplace("junit", k_gitlab_junit).second) { by_program_.insert("junit"); }
    }
    if (args.get("fail-on") == "warning") { fail_on_ = Severity::warning; }
    if (const auto file = args.get("baseline")) { baseline_ = read_baseline(*file); }
}

void Reporting::forget_known(Diagnostics& findings) {
    if (baseline_) { known_ = known_.value_or(0) + baseline_->remove_known(findings); }
}

void Reporting::publish(const std::string& check, const std::vector<std::string>& files, const Diagnostics& findings,
                        cli::Context& context) const {
    report::Report report;
    report.tool = context.program.name;
    report.version = KMM_VERSION;
    report.check = check;
    report.files = files;
    report.findings = findings;
    report.fail_on = fail_on_;
    for (const auto& code : plan::codes()) {
        report.rules.push_back({code.code, code.verdict, code.meaning, code.remedy});
    }
    for (const auto& format : report::format_names()) {
        const auto file = files_.find(format);
        if (file == files_.end()) { continue; }
        const auto by = by_program_.contains(format) ? cli::NamedBy::program : cli::NamedBy::user;
        cli::write_report(context, file->second, report::text_of(format, report), by);
    }
    if (ci_ == "github") { publish_github(report, failed(findings), context); }
}

bool Reporting::failed(const Diagnostics& findings) const noexcept {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const auto& f) { return report::fails(f.severity, fail_on_); });
}

Error Reporting::failure(Diagnostics findings) const {
    if (has_errors(findings)) { return Error::from_diagnostics(std::move(findings)); }
    const std::size_t warnings = report::count(findings, Severity::warning);
    if (findings.size() == 1) {
        const Diagnostic only = findings.front();
        Error error(Exit::data, only.code, only.message);
        if (only.position) { error.at(*only.position); }
        return std::move(error).hint(only.hint).detail("fail-on", "warning").attach(std::move(findings));
    }
    return Error(Exit::data, "warnings",
                 base::counted(warnings, "warning") + " found, and --fail-on warning is given")
        .hint("kmm-plan explain CODE describes each")
        .attach(std::move(findings));
}

cli::Option metrics_option() {
    return cli::option("metrics", "FILE", "write metrics of the result, as OpenMetrics text");
}

cli::Option metrics_cluster_option() {
    return cli::option("metrics-cluster", "NAME", report::k_metrics_cluster_help);
}

void write_metrics(const cli::Args& args, cli::Context& context, const std::vector<report::MetricFamily>& families) {
    if (const auto file = args.get("metrics")) {
        cli::write_report(context, *file, report::openmetrics_text(families, args.get("metrics-cluster").value_or("")));
    }
}

}  // namespace kmm::tool_plan
