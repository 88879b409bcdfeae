// SPDX-License-Identifier: Apache-2.0
#include "base/invisible.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kmm::base {

std::uint32_t code_point(std::string_view sequence) noexcept {
    if (sequence.empty()) { return 0; }
    const auto byte = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(sequence[i]); };
    constexpr std::array<std::uint32_t, 5> k_lead{0, 0x7FU, 0x1FU, 0x0FU, 0x07U};
    std::uint32_t point = byte(0) & k_lead[std::min<std::size_t>(sequence.size(), 4)];
    for (std::size_t i = 1; i < sequence.size(); ++i) { point = (point << 6U) | (byte(i) & 0x3FU); }
    return point;
}

bool is_invisible(std::uint32_t point) noexcept {
    constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 13> k_ranges = {{
        {0x80, 0xA0},
        {0xAD, 0xAD},
        {0x61C, 0x61C},
        {0x180E, 0x180E},
        {0x2000, 0x200F},
        {0x2028, 0x202F},
        {0x205F, 0x206F},
        {0x3000, 0x3000},
        {0x3164, 0x3164},
        {0xFDD0, 0xFDEF},
        {0xFEFF, 0xFEFF},
        {0xFFF9, 0xFFFB},
        {0xE0000, 0xE0FFF},
    }};
    return (point & 0xFFFEU) == 0xFFFEU ||
           std::any_of(k_ranges.begin(), k_ranges.end(),
                       [&](const auto& range) { return point >= range.first && point <= range.second; });
}

}  // namespace kmm::base
