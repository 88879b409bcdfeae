// SPDX-License-Identifier: Apache-2.0
#include "value/mark_cursor.hpp"

#include <algorithm>
#include <cstring>

namespace kmm::value {

namespace {

/// LFs of whole blocks, sixteen bytes at a time: half of a large dump's time would otherwise go into finding lines.
std::size_t count_block_lines(const char* bytes, std::size_t blocks) noexcept {
    using Lanes = unsigned char __attribute__((vector_size(16)));
    constexpr std::size_t k_sums_max = 255;  // what a lane can hold
    std::size_t lines = 0;
    while (blocks > 0) {
        const auto some = std::min(blocks, k_sums_max);
        Lanes sums{};
        for (std::size_t i = 0; i < some; ++i, bytes += sizeof(Lanes)) {
            Lanes block;
            std::memcpy(&block, bytes, sizeof block);
            sums -= reinterpret_cast<Lanes>(block == static_cast<unsigned char>('\n'));  // true is all ones
        }
        for (std::size_t lane = 0; lane < sizeof(Lanes); ++lane) lines += sums[lane];
        blocks -= some;
    }
    return lines;
}

}  // namespace

LineCount count_lines(std::string_view text) noexcept {
    constexpr std::size_t k_block = 16;
    const std::size_t blocks = text.size() / k_block;
    LineCount result;
    if (blocks > 0) result.lines = count_block_lines(text.data(), blocks);
    const auto rest = text.substr(blocks * k_block);
    result.lines += static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '\n'));
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
