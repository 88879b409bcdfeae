// SPDX-License-Identifier: Apache-2.0
// The forms of a report by name, and the option --report of every verb that checks something.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report/report.hpp"

namespace kmm::report {

/// junit, sarif, md, html, codequality.
[[nodiscard]] const std::vector<std::string>& format_names();
/// `report` in the form of that name, which is one of format_names().
[[nodiscard]] std::string text_of(const std::string& format, const Report& report);

/// Format to file.
using Files = std::map<std::string, std::string>;
/// The values of --report, each "junit=a.xml,sarif=b.json". Errors: usage "bad-value".
[[nodiscard]] Files parse_files(const std::vector<std::string>& options);

}  // namespace kmm::report
