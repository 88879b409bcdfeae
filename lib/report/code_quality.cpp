// SPDX-License-Identifier: Apache-2.0
// GitLab's subset of the Code Climate report format.
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "report/report.hpp"
#include "value/writer.hpp"

namespace kmm::report {

namespace {

std::string_view quality_severity(Severity severity) {
    switch (severity) {
        case Severity::error: return "major";
        case Severity::warning: return "minor";
        case Severity::note: return "info";
    }
    return "info";
}

}  // namespace

std::string to_code_quality(const Report& report) {
    using value::Node;
    const std::string elsewhere = report.files.empty() ? std::string(k_no_file) : report_path(report.files.front());
    const auto marks = fingerprints(report.findings);
    Node list = Node::sequence();
    for (std::size_t i = 0; i < report.findings.size(); ++i) {
        const Diagnostic& finding = report.findings[i];
        const std::size_t line = finding.position && finding.position->line != 0 ? finding.position->line : 1;
        const std::string hint = finding.hint.empty() ? "" : fmt::format(" ({})", finding.hint);
        Node location = Node::mapping({{"path", finding.position ? report_path(finding.position->file) : elsewhere}});
        location.set("lines", Node::mapping({{"begin", static_cast<std::uint64_t>(line)}}));
        Node issue =
            Node::mapping({{"description", base::printable(finding.message + hint)}, {"check_name", finding.code}});
        issue.set("fingerprint", marks[i]);
        issue.set("severity", quality_severity(finding.severity));
        issue.set("location", std::move(location));
        list.push_back(std::move(issue));
    }
    return value::to_json_pretty(list);
}

}  // namespace kmm::report
