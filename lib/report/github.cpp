// SPDX-License-Identifier: Apache-2.0
// Workflow commands. Source of the escapes: actions/toolkit packages/core/src/command.ts.
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "report/report.hpp"

namespace kmm::report {

namespace {

enum class CommandPart { data, property };

std::string command_text(std::string_view text, CommandPart part) {
    std::string safe;
    for (const char c : text) {
        const bool separates = part == CommandPart::property && (c == ':' || c == ',');
        if (c == '%' || c == '\r' || c == '\n' || separates) {
            safe += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        } else {
            safe.push_back(c);
        }
    }
    return safe;
}

std::string_view command_name(Severity severity) {
    return severity == Severity::note ? std::string_view("notice") : to_string(severity);
}

}  // namespace

std::string to_github(const Report& report) {
    if (report.findings.empty()) { return ""; }
    std::string text = fmt::format("::group::{}\n", headline(report));
    for (const auto& finding : report.findings) {
        std::string properties;
        if (finding.position) {
            properties = fmt::format(
                "file={},", command_text(base::printable(report_path(finding.position->file)), CommandPart::property));
            if (finding.position->line != 0) {
                properties += fmt::format("line={},", finding.position->line);
                if (finding.position->column != 0) { properties += fmt::format("col={},", finding.position->column); }
            }
        }
        const std::string hint = finding.hint.empty() ? "" : fmt::format("\nhint: {}", base::printable(finding.hint));
        text += fmt::format("::{} {}title={}::{}\n", command_name(finding.severity), properties,
                            command_text(finding.code, CommandPart::property),
                            command_text(base::printable(finding.message) + hint, CommandPart::data));
    }
    return text + "::endgroup::\n";
}

}  // namespace kmm::report
