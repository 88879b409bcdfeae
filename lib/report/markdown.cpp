// SPDX-License-Identifier: Apache-2.0
// GitHub-flavoured Markdown, for step summaries and comments of merge requests.
#include <fmt/format.h>

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

}  // namespace

std::string markdown_text(std::string_view text) {
    constexpr std::string_view special = "\\`*_{}[]<>#|~&";
    std::string safe;
    char before = ' ';
    for (const char c : base::printable(text)) {
        if (special.find(c) != std::string_view::npos) { safe.push_back('\\'); }
        safe.push_back(c);
        // A backslash does not keep a mention away, a comment does.
        if (c == '@' && !joins_mention(before)) { safe += "<!-- -->"; }
        before = c;
    }
    return safe;
}

namespace {

std::string markdown_row(const Diagnostic& finding) {
    std::string place;
    if (finding.position) {
        const Position shown{report_path(finding.position->file), finding.position->line, finding.position->column};
        place = markdown_text(shown.to_string());
    }
    std::string text = markdown_text(finding.message);
    if (!finding.hint.empty()) { text += fmt::format("<br>hint: {}", markdown_text(finding.hint)); }
    return fmt::format("| {} | {} | {} | {} |\n", to_string(finding.severity), place, text,
                       markdown_text(finding.code));
}

/// A table of `rows` with `head`, at most `bytes_max` bytes with what `text` has. False if rows were left out.
bool add_table(std::string& text, std::string_view head, const std::vector<std::string>& rows, std::string_view what,
               std::size_t bytes_max) {
    constexpr std::size_t k_last_line_max = 64;
    std::string begun(head);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (text.size() + begun.size() + rows[i].size() + k_last_line_max > bytes_max) {
            text += fmt::format("\n{} more {} are not shown\n", rows.size() - i, what);
            return false;
        }
        text += begun + rows[i];
        begun.clear();
    }
    return true;
}

}  // namespace

std::string to_markdown(const Report& report, std::size_t bytes_max) {
    std::string text = fmt::format("## {}\n\n", headline(report));
    std::vector<std::string> findings;
    std::vector<std::string> skipped;
    for (const auto& finding : report.findings) { findings.push_back(markdown_row(finding)); }
    for (const auto& [title, reason] : checks_not_made(report)) {
        skipped.push_back(fmt::format("| {} | {} |\n", markdown_text(title), markdown_text(reason)));
    }
    constexpr std::string_view finding_head =
        "| severity | place | finding | code |\n| --- | --- | --- | --- |\n";
    const std::string skipped_head =
        fmt::format("{}| check not made | reason |\n| --- | --- |\n", findings.empty() ? "" : "\n");
    if (add_table(text, finding_head, findings, "findings", bytes_max)) {
        add_table(text, skipped_head, skipped, "checks not made", bytes_max);
    }
    if (const auto files = looked_at(report); findings.empty() && !files.empty()) { text += files + '\n'; }
    return text;
}

}  // namespace kmm::report
