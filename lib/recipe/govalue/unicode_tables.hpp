// SPDX-License-Identifier: Apache-2.0
// Tables of characters from U+0080 on; see unicode.hpp for their use.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace kmm::recipe::tmpl::tables {

struct Range {
    char32_t low, high;
};

/// `delta` leads to upper, lower and title case; 0x110000: upper and lower case take turns.
struct CaseRange {
    char32_t low, high;
    std::array<std::int32_t, 3> delta;
};

[[nodiscard]] std::span<const Range> printable() noexcept;
[[nodiscard]] std::span<const Range> letters() noexcept;
[[nodiscard]] std::span<const Range> upper() noexcept;
[[nodiscard]] std::span<const CaseRange> cases() noexcept;

}  // namespace kmm::recipe::tmpl::tables
