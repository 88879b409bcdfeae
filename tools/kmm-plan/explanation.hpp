// SPDX-License-Identifier: Apache-2.0
// The text of one code, as `explain` prints it.
#pragma once

#include <string>

#include "plan/codes.hpp"

namespace kmm::tool_plan {

/// Verdict, kind, meaning and remedy, at most 80 columns wide. Ends with a newline.
[[nodiscard]] std::string explanation_text(const plan::Code& code);

}  // namespace kmm::tool_plan
