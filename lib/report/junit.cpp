// SPDX-License-Identifier: Apache-2.0
// JUnit XML. There is no standard; the shape is that of the schema which Jenkins publishes.
#include <set>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "report/report.hpp"

namespace kmm::report {

namespace {

/// Text and attribute values: control characters, which XML 1.0 cannot hold, are escaped as on a terminal.
std::string xml(std::string_view text) {
    std::string safe;
    for (const char c : base::printable(text)) {
        switch (c) {
            case '&': safe += "&amp;"; break;
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '"': safe += "&quot;"; break;
            case '\'': safe += "&apos;"; break;
            default: safe.push_back(c);
        }
    }
    return safe;
}

std::string junit_body(const Diagnostic& finding) {
    std::string text = finding.position ? xml(finding.position->to_string()) + ": " : "";
    text += fmt::format("{}: {}", to_string(finding.severity), xml(finding.message));
    return finding.hint.empty() ? text : fmt::format("{}\nhint: {}", text, xml(finding.hint));
}

std::string junit_case(const Report& report, const Diagnostic& finding) {
    const std::string file = finding.position ? report_path(finding.position->file) : "cluster";
    std::string text = fmt::format("    <testcase classname=\"{}\" name=\"{}: {}\"", xml(file), xml(finding.code),
                                   xml(finding.message));
    if (finding.position) { text += fmt::format(" file=\"{}\"", xml(file)); }
    if (finding.position && finding.position->line != 0) {
        text += fmt::format(" line=\"{}\"", finding.position->line);
    }
    const std::string body = junit_body(finding);
    if (fails(finding.severity, report.fail_on)) {
        return text + fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                                  xml(finding.code), xml(finding.message), body);
    }
    return text + fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n", body);
}

}  // namespace

std::string to_junit(const Report& report) {
    std::string cases;
    std::size_t tests = 0;
    std::size_t failures = 0;
    std::set<std::string> touched;
    for (const auto& finding : report.findings) {
        cases += junit_case(report, finding);
        ++tests;
        failures += fails(finding.severity, report.fail_on) ? 1U : 0U;
        if (finding.position) { touched.insert(finding.position->file); }
    }
    for (const auto& file : report.files) {
        if (!report.counts.empty() || !touched.insert(file).second) { continue; }
        cases += fmt::format("    <testcase classname=\"{}\" name=\"no findings\"/>\n", xml(report_path(file)));
        ++tests;
    }
    std::size_t skipped = 0;
    for (const auto& [title, reason] : report.quiet) {
        const auto begin = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml(report.check), xml(title));
        cases += reason.empty()
                     ? begin + "/>\n"
                     : fmt::format("{}>\n      <skipped message=\"{}\"/>\n    </testcase>\n", begin, xml(reason));
        ++tests;
        skipped += reason.empty() ? 0U : 1U;
    }
    const std::string name = xml(fmt::format("{} {}", report.tool, report.check));
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{0}\" tests=\"{1}\" failures=\"{2}\" "
        "errors=\"0\">\n"
        "  <testsuite name=\"{0}\" tests=\"{1}\" failures=\"{2}\" errors=\"0\" skipped=\"{4}\">\n{3}  </testsuite>\n"
        "</testsuites>\n",
        name, tests, failures, cases, skipped);
}

}  // namespace kmm::report
