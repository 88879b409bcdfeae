// SPDX-License-Identifier: Apache-2.0
// GitHub-flavoured Markdown, for step summaries and comments of merge requests.
#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "report/report.hpp"

namespace kmm::report {

namespace {

/// A byte after which GitHub and GitLab take "@name" for no mention: a letter, a digit or '_', as in an address or
/// NAME@sha256:DIGEST.
bool joins_mention(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Text in a cell: nothing of it is markup, and nobody is mentioned. A backslash does not keep a mention away, a
/// comment does.
std::string cell(std::string_view text) {
    constexpr std::string_view special = "\\`*_{}[]<>#|~&";
    std::string safe;
    char before = ' ';
    for (const char c : base::printable(text)) {
        if (special.find(c) != std::string_view::npos) { safe.push_back('\\'); }
        safe.push_back(c);
        if (c == '@' && !joins_mention(before)) { safe += "<!-- -->"; }
        before = c;
    }
    return safe;
}

std::string markdown_row(const Diagnostic& finding) {
    std::string place;
    if (finding.position) {
        const Position shown{report_path(finding.position->file), finding.position->line, finding.position->column};
        place = cell(shown.to_string());
    }
    std::string text = cell(finding.message);
    if (!finding.hint.empty()) { text += fmt::format("<br>hint: {}", cell(finding.hint)); }
    return fmt::format("| {} | {} | {} | {} |\n", to_string(finding.severity), place, text, cell(finding.code));
}

}  // namespace

std::string to_markdown(const Report& report, std::size_t bytes_max) {
    constexpr std::size_t k_last_line_max = 64;
    std::string text = fmt::format("## {} {}: {}\n\n", report.tool, report.check, summary(report.findings));
    if (report.findings.empty()) {
        return text + base::counted(report.files.size(), "file") + '\n';
    }
    text += "| severity | place | finding | code |\n| --- | --- | --- | --- |\n";
    for (std::size_t i = 0; i < report.findings.size(); ++i) {
        const std::string row = markdown_row(report.findings[i]);
        if (text.size() + row.size() + k_last_line_max > bytes_max) {
            return text + fmt::format("\n{} more findings are not shown\n", report.findings.size() - i);
        }
        text += row;
    }
    return text;
}

}  // namespace kmm::report
