// SPDX-License-Identifier: Apache-2.0
// Patterns with * and ?.
#pragma once

#include <string_view>

namespace kmm::base {

/// Whether `pattern` matches the whole of `text`: "*" stands for any characters, none included, and "?" for one byte;
/// both match a slash, too. O(|text| * |pattern|).
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace kmm::base
