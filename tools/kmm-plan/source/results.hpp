// SPDX-License-Identifier: Apache-2.0
// Files that are written into a checkout, whose author may have put links there.
#pragma once

#include <string>

#include "cli/app.hpp"

namespace kmm::tool_plan {

/// For a path to write below the current directory: its way must not lead out of that by links. Other paths are as the
/// user has named them. Errors: data "link-leaves".
void require_way_inside(const std::string& path);

/// Writes a report to what an option or a CI system names, as cli::write_report does; but a link in its place is
/// replaced, not followed. Errors: those of require_way_inside and of cli::write_report.
void write_result(cli::Context& context, const std::string& file, const std::string& text);

}  // namespace kmm::tool_plan
