// SPDX-License-Identifier: Apache-2.0
// Go's quoted texts back to what they mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kmm::recipe::tmpl {

/// strconv.Unquote of a text in double quotes; nullopt for a wrong escape or a line break.
[[nodiscard]] std::optional<std::string> unquote(std::string_view quoted);
/// A character constant in single quotes; nullopt if it is not exactly one character.
[[nodiscard]] std::optional<char32_t> unquote_rune(std::string_view quoted);

}  // namespace kmm::recipe::tmpl
