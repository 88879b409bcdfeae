// SPDX-License-Identifier: Apache-2.0
// Names for -o name and -o list, one a line.
#pragma once

#include <string_view>

namespace kmm::cli {

/// `name` itself, to be printed with a line end behind it. Scripts take each line for a name: one that would make a
/// second line, move a terminal's cursor or look like another name is refused. Errors: data "bad-value".
[[nodiscard]] std::string_view plain_name(std::string_view name);

}  // namespace kmm::cli
