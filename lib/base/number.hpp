// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace kmm::base {

/// The number that the whole of `text` writes. For an integer: digits of `radix` (2 to 36), "-" before them if `Number` is signed, no "+", no
/// blanks, no "0x"; for a floating-point number: decimal, `radix` stays 10. Independent of the locale. Nothing if other bytes
/// follow, or if the value does not fit in `Number`. O(length), without allocation.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, [[maybe_unused]] int radix = 10) noexcept {
    Number value{};
    const char* const end = text.data() + text.size();
    std::from_chars_result result{};
    if constexpr (std::is_integral_v<Number>) {
        result = std::from_chars(text.data(), end, value, radix);
    } else {
        result = std::from_chars(text.data(), end, value);
    }
    return result.ec == std::errc{} && result.ptr == end ? std::optional(value) : std::nullopt;
}

}  // namespace kmm::base
