// SPDX-License-Identifier: Apache-2.0
// Which findings are about what a command line asks for.
#pragma once

#include "base/error.hpp"
#include "cli/app.hpp"

namespace kmm::tool_plan {

/// False for a finding about Modules alone that neither MODULE nor -n names; everything is asked for where neither is
/// given.
[[nodiscard]] bool is_asked(const Diagnostic& finding, const cli::Args& args);

/// Removes findings that an object is not there, such as node-missing: for inputs that were not read as a whole, which
/// may have the object.
void drop_absent(Diagnostics& findings);

}  // namespace kmm::tool_plan
