// SPDX-License-Identifier: Apache-2.0
// Go's package regexp, by RE2, whose syntax it has. Every function throws Fault for a wrong pattern.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::recipe::tmpl {

class Budget;

/// Whether `pattern` is found in `text`.
[[nodiscard]] bool regex_matches(const std::string& pattern, const std::string& text);
/// FindAllString: at most `most` matches, or all if it is negative. Asks `budget` before each.
[[nodiscard]] std::vector<std::string> regex_find(const std::string& pattern, const std::string& text,
                                                  std::int64_t most, Budget& budget);
/// ReplaceAllString, where `by` has $1, ${name} and $$; or with `is_literal` ReplaceAllLiteralString. Throws Fault
/// "recipe-too-large".
[[nodiscard]] std::string regex_replace(const std::string& pattern, const std::string& text, const std::string& by,
                                        bool is_literal);
/// Split; nullopt is Go's nil, for `most` 0. Asks `budget` before each piece.
[[nodiscard]] std::optional<std::vector<std::string>> regex_split(const std::string& pattern, const std::string& text,
                                                                  std::int64_t most, Budget& budget);
/// QuoteMeta.
[[nodiscard]] std::string regex_quote(std::string_view text);

}  // namespace kmm::recipe::tmpl
