// SPDX-License-Identifier: Apache-2.0
// Text for people to read.
#pragma once

#include <string>
#include <string_view>

namespace kmm::base {

/// As escape, but a backslash stays as it is: for regular expressions, and for text that was escaped already.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace kmm::base
