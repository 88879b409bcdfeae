// SPDX-License-Identifier: Apache-2.0
// A page that stands alone: no script, nothing is loaded from elsewhere.
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "report/report.hpp"

namespace kmm::report {

namespace {

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

std::string html_row(const Diagnostic& finding) {
    std::string place;
    if (finding.position) {
        place = html_text(Position{report_path(finding.position->file), finding.position->line, finding.position->column}.to_string());
    }
    const std::string hint = finding.hint.empty() ? "" : fmt::format("<br><small>hint: {}</small>", html_text(finding.hint));
    return fmt::format("<tr class=\"{0}\"><td>{0}</td><td>{1}</td><td>{2}{3}</td><td>{4}</td></tr>\n", to_string(finding.severity), place,
                       html_text(finding.message), hint, html_text(finding.code));
}

}  // namespace

std::string to_html(const Report& report) {
    const std::string title = html_text(fmt::format("{} {}: {}", report.tool, report.check, summary(report.findings)));
    std::string text = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>\n"
        "body {{ font-family: sans-serif }}\ntable {{ border-collapse: collapse }}\n"
        "th, td {{ border: 1px solid #999; padding: 0.2em 0.6em; text-align: left; vertical-align: top }}\n"
        "tr.error td:first-child {{ background: #c22; color: #fff }}\ntr.warning td:first-child {{ background: #fd8 }}\n"
        "</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
        title);
    if (!report.findings.empty()) {
        text += "<table>\n<tr><th>severity</th><th>place</th><th>finding</th><th>code</th></tr>\n";
        for (const auto& finding : report.findings) { text += html_row(finding); }
        text += "</table>\n";
    }
    return text + fmt::format("<p>{} file{}, {} {}</p>\n</body>\n</html>\n", report.files.size(), report.files.size() == 1 ? "" : "s",
                              html_text(report.tool), html_text(report.version));
}

}  // namespace kmm::report
