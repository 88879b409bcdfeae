// SPDX-License-Identifier: Apache-2.0
#include "value/mark_cursor.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace kmm::value {

namespace {

using Lanes = unsigned char __attribute__((vector_size(16)));

/// 1 in each lane that holds an LF.
Lanes line_ends(const char* bytes) noexcept {
    Lanes block;
    std::memcpy(&block, bytes, sizeof block);
    return -reinterpret_cast<Lanes>(block == static_cast<unsigned char>('\n'));  // true is all ones
}

/// The sum of lanes that are at most 31 each.
std::size_t sum(Lanes lanes) noexcept {
    std::array<std::uint64_t, 2> halves;
    std::memcpy(halves.data(), &lanes, sizeof lanes);
    constexpr std::uint64_t k_ones = 0x0101010101010101U;
    return ((halves[0] * k_ones) >> 56U) + ((halves[1] * k_ones) >> 56U);
}

/// All ones in the last `count` lanes.
Lanes last_lanes(std::size_t count) noexcept {
    alignas(16) static constexpr std::array<unsigned char, 32> k_mask = {
        0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    Lanes lanes;
    std::memcpy(&lanes, k_mask.data() + count, sizeof lanes);
    return lanes;
}

}  // namespace

LineCount count_lines(std::string_view text) noexcept {
    constexpr std::size_t k_sums_max = 31;
    const char* at = text.data();
    LineCount result;
    for (auto blocks = text.size() / sizeof(Lanes); blocks > 0;) {
        const auto some = std::min(blocks, k_sums_max);
        Lanes sums{};
        for (std::size_t i = 0; i < some; ++i, at += sizeof(Lanes)) sums += line_ends(at);
        result.lines += sum(sums);
        blocks -= some;
    }
    const auto rest = text.size() % sizeof(Lanes);
    if (rest > 0 && text.size() >= sizeof(Lanes)) {
        // The last block overlaps the one before; `rest` of its lanes are new.
        result.lines += sum(line_ends(at + rest - sizeof(Lanes)) & last_lanes(rest));
    } else {
        result.lines += static_cast<std::size_t>(std::count(at, at + rest, '\n'));
    }
    if (result.lines > 0) result.last_start = text.rfind('\n') + 1;
    return result;
}

Mark MarkCursor::mark(std::string_view text, std::size_t offset) noexcept {
    if (offset > at_) {
        const auto passed = count_lines(text.substr(at_, offset - at_));
        if (passed.lines > 0) {
            line_ += static_cast<std::uint32_t>(passed.lines);
            line_start_ = static_cast<std::ptrdiff_t>(at_ + passed.last_start);
        }
        at_ = offset;
    }
    return Mark{line_, static_cast<std::uint32_t>(static_cast<std::ptrdiff_t>(offset) - line_start_ + 1)};
}

void MarkCursor::drop(std::size_t count) noexcept {
    at_ -= count;
    line_start_ -= static_cast<std::ptrdiff_t>(count);
}

}  // namespace kmm::value
