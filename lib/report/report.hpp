// SPDX-License-Identifier: Apache-2.0
// Findings in the forms that pipelines read. Pure and byte-stable: same findings, same text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace kmm::report {

/// What one code means, for formats that list their rules.
struct Rule {
    std::string code, verdict, meaning, remedy;
};

/// The result of one check.
struct Report {
    std::string tool;     ///< "kmm-plan"
    std::string version;  ///< of the tool, "1.2.3"
    std::string check;    ///< the verb, "validate"
    std::vector<std::string> files;  ///< everything that was looked at, as the user named it
    /// Of a list of checks of a cluster: how they ended, "29 OK, 0 WARN, 0 FAIL, 44 SKIP", in headings; "" of a check
    /// of files, whose headings count the findings.
    std::string counts;
    Diagnostics findings;            ///< sorted
    /// Tests without a finding, which JUnit lists: name, and why it was not made, "" if it passed.
    std::vector<std::pair<std::string, std::string>> quiet;
    std::vector<Rule> rules;         ///< sorted by code; those of other codes are left out of the reports
    Severity fail_on = Severity::error;  ///< error or warning: what makes a check fail
};

/// True if a finding of `severity` fails a check with that threshold. Notes never do.
[[nodiscard]] bool fails(Severity severity, Severity fail_on) noexcept;

/// How many findings have that severity.
[[nodiscard]] std::size_t count(const Diagnostics& findings, Severity severity) noexcept;

/// "2 errors, 1 warning"; "no findings" if there are none.
[[nodiscard]] std::string summary(const Diagnostics& findings);

/// What headings say: "kmm-plan validate: 2 errors", with `counts` if the report has them.
[[nodiscard]] std::string headline(const Report& report);

/// What ends a page: "2 files" of a check of files; "" of a list of checks.
[[nodiscard]] std::string looked_at(const Report& report);

/// Those of `quiet` that were not made, each with its reason.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> checks_not_made(const Report& report);

/// `file` without "./" in front, as pipelines name files of a repository; "stdin" for "-".
[[nodiscard]] std::string report_path(std::string_view file);

/// 16 hexadecimal digits over code, file and message, not over the position: a finding keeps its mark when lines are
/// added above it. Findings that agree in all three are told apart by their number.
[[nodiscard]] std::vector<std::string> fingerprints(const Diagnostics& findings);

/// JUnit XML as Jenkins, GitLab and GitHub actions read it: a test case a finding, which fails if the finding fails the
/// check, and one that passes for each file without findings, if files were checked.
[[nodiscard]] std::string to_junit(const Report& report);

/// Where findings stand that belong to no file, if no file was read at all, in formats in which each has a place.
inline constexpr std::string_view k_no_file = "cluster";

/// SARIF 2.1.0 (OASIS), one run; lines and columns are those of the findings. A finding without a place is in the first
/// file, line 1. Checks that were not made are notifications of the run, not results.
[[nodiscard]] std::string to_sarif(const Report& report);

inline constexpr std::size_t k_markdown_bytes_max = 1U << 20U;  ///< what GitHub takes as a step summary

/// A heading, a table of findings and one of checks that were not made. At most `bytes_max` bytes: further rows are
/// counted in the last line.
[[nodiscard]] std::string to_markdown(const Report& report, std::size_t bytes_max = k_markdown_bytes_max);

/// `text` as GitHub-flavoured Markdown, also in a cell of a table: nothing of it is markup, and nobody is mentioned;
/// control characters are visible.
[[nodiscard]] std::string markdown_text(std::string_view text);

/// `text` as HTML's text or as the value of an attribute: what would be markup is an entity, control characters are
/// visible.
[[nodiscard]] std::string html_text(std::string_view text);

/// A page that stands alone, without a script, and loads nothing. `title` is text, and the heading as well; `style` is
/// CSS after what all pages have, `body` HTML after the heading; both end in a newline, or are "".
[[nodiscard]] std::string html_page(std::string_view title, std::string_view style, std::string_view body);

/// A page of the same tables.
[[nodiscard]] std::string to_html(const Report& report);

/// GitLab's Code Quality report: a JSON list. Findings without a file are placed in the first one that was looked at.
[[nodiscard]] std::string to_code_quality(const Report& report);

/// GitHub's workflow commands, one line a finding: "::error file=F,line=L,col=C,title=CODE::MESSAGE", in a group that
/// is named after the check. Nothing if there are no findings.
[[nodiscard]] std::string to_github(const Report& report);

}  // namespace kmm::report
