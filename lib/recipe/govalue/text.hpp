// SPDX-License-Identifier: Apache-2.0
// Go's package strings, as far as templates need it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::recipe::tmpl {

class Budget;

/// strings.ReplaceAll: an empty `what` matches before each character and at the end.
[[nodiscard]] std::string replace_all(std::string_view text, std::string_view what, std::string_view by);
/// strings.SplitN; `count` -1 for all. An empty separator splits into characters. Asks `budget` before each piece, if
/// there is one.
[[nodiscard]] std::vector<std::string> split_text(std::string_view text, std::string_view separator,
                                                  std::int64_t count = -1, Budget* budget = nullptr);
/// strings.TrimSpace.
[[nodiscard]] std::string_view trim_space(std::string_view text);
/// strings.Trim: without characters of `set` at both ends.
[[nodiscard]] std::string_view trim_set(std::string_view text, std::string_view set);
[[nodiscard]] std::string join_texts(const std::vector<std::string>& pieces, std::string_view separator);

}  // namespace kmm::recipe::tmpl
