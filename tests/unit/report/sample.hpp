// SPDX-License-Identifier: Apache-2.0
// Findings with everything that needs an escape somewhere.
#pragma once

#include "report/report.hpp"

namespace sample {

inline kmm::Diagnostic finding(kmm::Severity severity, std::string code, std::string message,
                               std::string file = "./m a.yaml", std::size_t line = 3) {
    kmm::Diagnostic made;
    made.severity = severity;
    made.code = std::move(code);
    made.message = std::move(message);
    if (!file.empty()) { made.position = kmm::Position{std::move(file), line, line == 0 ? 0U : 7U}; }
    return made;
}

inline kmm::report::Report report() {
    using kmm::Severity;
    kmm::report::Report made;
    made.tool = "kmm-plan";
    made.version = "1.2.3";
    made.check = "validate";
    made.files = {"./m a.yaml", "b.yaml"};
    made.findings = {finding(Severity::error, "host-path", "path \"/a,b:c\" <& 100% | \x01"),
                     finding(Severity::warning, "dotted-name", "a_b*"), finding(Severity::note, "odd", "x", ""),
                     finding(Severity::error, "file-not-found", "gone", "/abs/z.yaml", 0)};
    made.findings[0].hint = "two\nlines";
    made.rules = {{"dotted-name", "a dot", "Dots are bad.", "use '-'"},
                  {"host-path", "a path", "", ""},
                  {"other", "unused", "", ""}};
    return made;
}

}  // namespace sample
