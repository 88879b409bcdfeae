// SPDX-License-Identifier: Apache-2.0
// Patterns of file names in templates.
#pragma once

#include <string_view>

namespace kmm::recipe::tmpl {

/// gobwas/glob with '/' as the separator: * within a name, ** across them, ?, [a-z], [!abc], {a,b} and \x. A pattern
/// that cannot be read matches everything, as Helm has it.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace kmm::recipe::tmpl
