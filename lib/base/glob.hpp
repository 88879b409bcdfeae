// SPDX-License-Identifier: Apache-2.0
// Patterns with * and ?.
#pragma once

#include <string_view>

namespace kmm::base {

/// Whether `pattern` matches the whole of `text`: * is any number of characters, ? is one; both match a slash, too.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace kmm::base
