// SPDX-License-Identifier: Apache-2.0
// Pages that stand alone: no script, nothing is loaded from elsewhere.
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "report/report.hpp"

namespace kmm::report {

std::string html_text(std::string_view text) {
    std::string safe;
    for (const char c : base::printable(text)) {
        switch (c) {
            case '&': safe += "&amp;"; break;
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '"': safe += "&quot;"; break;
            default: safe.push_back(c);
        }
    }
    return safe;
}

std::string html_page(std::string_view title, std::string_view style, std::string_view body) {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n<style>\n"
        "body {{ font-family: sans-serif }}\ntable {{ border-collapse: collapse }}\n"
        "th, td {{ border: 1px solid #999; padding: 0.2em 0.6em; text-align: left; vertical-align: top }}\n"
        "{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n</html>\n",
        html_text(title), style, body);
}

namespace {

std::string html_row(const Diagnostic& finding) {
    std::string place;
    if (finding.position) {
        place =
            html_text(Position{report_path(finding.position->file), finding.position->line, finding.position->column}
                          .to_string());
    }
    const std::string hint =
        finding.hint.empty() ? "" : fmt::format("<br><small>hint: {}</small>", html_text(finding.hint));
    return fmt::format("<tr class=\"{0}\"><td>{0}</td><td>{1}</td><td>{2}{3}</td><td>{4}</td></tr>\n",
                       to_string(finding.severity), place, html_text(finding.message), hint, html_text(finding.code));
}

}  // namespace

std::string to_html(const Report& report) {
    std::string text;
    if (!report.findings.empty()) {
        text += "<table>\n<tr><th>severity</th><th>place</th><th>finding</th><th>code</th></tr>\n";
        for (const auto& finding : report.findings) { text += html_row(finding); }
        text += "</table>\n";
    }
    if (const auto skipped = checks_not_made(report); !skipped.empty()) {
        text += "<h2>Checks not made</h2>\n<table>\n<tr><th>check</th><th>reason</th></tr>\n";
        for (const auto& [title, reason] : skipped) {
            text += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", html_text(title), html_text(reason));
        }
        text += "</table>\n";
    }
    const std::string files = looked_at(report);
    text += fmt::format("<p>{}{}{} {}</p>\n", files, files.empty() ? "" : ", ", html_text(report.tool),
                        html_text(report.version));
    return html_page(
        headline(report),
        "tr.error td:first-child { background: #c22; color: #fff }\ntr.warning td:first-child { background: #fd8 }\n",
        text);
}

}  // namespace kmm::report
