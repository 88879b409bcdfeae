// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace kmm::base {

/// The integer that the whole of `text` writes: digits of `radix` (2 to 36), "-" before them if `Number` is signed, no
/// "+", no blanks, no "0x". Independent of the locale. Nothing if other bytes follow, or if the value does not fit in
/// `Number`. O(length), without allocation.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, int radix = 10) noexcept {
    static_assert(std::is_integral_v<Number>);
    Number value{};
    const char* const end = text.data() + text.size();
    const std::from_chars_result result = std::from_chars(text.data(), end, value, radix);
    return result.ec == std::errc{} && result.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace kmm::base
