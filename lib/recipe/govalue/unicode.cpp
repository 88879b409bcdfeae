// SPDX-License-Identifier: Apache-2.0
// Unicode 15 as Go's package unicode has it: printable characters, letters, upper case and the mappings of case.
#include "recipe/govalue/unicode.hpp"

#include <algorithm>
#include <span>

#include "recipe/govalue/unicode_tables.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::int32_t k_alternating = 0x110000;

bool in_ranges(std::span<const tables::Range> ranges, char32_t rune) noexcept {
    const auto found = std::lower_bound(ranges.begin(), ranges.end(), rune,
                                        [](const tables::Range& r, char32_t c) { return r.high < c; });
    return found != ranges.end() && found->low <= rune;
}

char32_t map_case(char32_t rune, std::size_t which) noexcept {
    const auto cases = tables::cases();
    const auto found = std::lower_bound(cases.begin(), cases.end(), rune,
                                        [](const tables::CaseRange& r, char32_t c) { return r.high < c; });
    if (found == cases.end() || rune < found->low) { return rune; }
    const std::int32_t delta = found->delta.at(which);
    if (delta >= k_alternating) {
        return found->low + (((rune - found->low) & ~char32_t{1}) | static_cast<char32_t>(which & 1U));
    }
    return static_cast<char32_t>(static_cast<std::int32_t>(rune) + delta);
}

}  // namespace

bool is_print(char32_t rune) noexcept {
    return rune < 0x80 ? rune >= 0x20 && rune < 0x7f : in_ranges(tables::printable(), rune);
}

bool is_letter(char32_t rune) noexcept {
    return rune < 0x80 ? (rune >= 'a' && rune <= 'z') || (rune >= 'A' && rune <= 'Z')
                       : in_ranges(tables::letters(), rune);
}

bool is_upper(char32_t rune) noexcept {
    return rune < 0x80 ? rune >= 'A' && rune <= 'Z' : in_ranges(tables::upper(), rune);
}

bool is_lower(char32_t rune) noexcept {
    return rune < 0x80 ? rune >= 'a' && rune <= 'z' : is_letter(rune) && !is_upper(rune) && to_upper(rune) != rune;
}

bool is_digit(char32_t rune) noexcept { return rune >= '0' && rune <= '9'; }

bool is_space(char32_t rune) noexcept {
    return (rune >= 9 && rune <= 13) || rune == ' ' || rune == 0x85 || rune == 0xa0 || rune == 0x1680 ||
           (rune >= 0x2000 && rune <= 0x200a) || rune == 0x2028 || rune == 0x2029 || rune == 0x202f || rune == 0x205f ||
           rune == 0x3000;
}

char32_t to_upper(char32_t rune) noexcept {
    if (rune < 0x80) { return rune >= 'a' && rune <= 'z' ? rune - 32 : rune; }
    return map_case(rune, 0);
}

char32_t to_lower(char32_t rune) noexcept {
    if (rune < 0x80) { return rune >= 'A' && rune <= 'Z' ? rune + 32 : rune; }
    return map_case(rune, 1);
}

char32_t to_title(char32_t rune) noexcept {
    if (rune < 0x80) { return to_upper(rune); }
    return map_case(rune, 2);
}

Decoded decode(std::string_view text, std::size_t at) noexcept {
    const auto byte = [&](std::size_t i) -> std::uint32_t {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
    const std::uint32_t first = byte(0);
    if (first < 0x80) { return {first, 1, true}; }
    if (first >= 0xC2 && first < 0xE0 && tail(1)) { return {((first & 0x1FU) << 6U) | (byte(1) & 0x3FU), 2, true}; }
    if (first >= 0xE0 && first < 0xF0 && tail(1) && tail(2)) {
        const char32_t rune = ((first & 0x0FU) << 12U) | ((byte(1) & 0x3FU) << 6U) | (byte(2) & 0x3FU);
        if (rune >= 0x800 && (rune < 0xD800 || rune > 0xDFFF)) { return {rune, 3, true}; }
    }
    if (first >= 0xF0 && first < 0xF5 && tail(1) && tail(2) && tail(3)) {
        const char32_t rune =
            ((first & 0x07U) << 18U) | ((byte(1) & 0x3FU) << 12U) | ((byte(2) & 0x3FU) << 6U) | (byte(3) & 0x3FU);
        if (rune >= 0x10000 && rune <= 0x10FFFF) { return {rune, 4, true}; }
    }
    return {k_rune_error, 1, false};
}

void append_rune(std::string& out, char32_t rune) {
    if (rune > 0x10FFFF || (rune >= 0xD800 && rune <= 0xDFFF)) { rune = k_rune_error; }
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (rune < 0x80) {
        put(rune);
    } else if (rune < 0x800) {
        put(0xC0U | (rune >> 6U));
        put(0x80U | (rune & 0x3FU));
    } else if (rune < 0x10000) {
        put(0xE0U | (rune >> 12U));
        put(0x80U | ((rune >> 6U) & 0x3FU));
        put(0x80U | (rune & 0x3FU));
    } else {
        put(0xF0U | (rune >> 18U));
        put(0x80U | ((rune >> 12U) & 0x3FU));
        put(0x80U | ((rune >> 6U) & 0x3FU));
        put(0x80U | (rune & 0x3FU));
    }
}

std::u32string runes(std::string_view text) {
    std::u32string out;
    for (std::size_t at = 0; at < text.size();) {
        const Decoded d = decode(text, at);
        out += d.rune;
        at += d.width;
    }
    return out;
}

std::string utf8(std::u32string_view text) {
    std::string out;
    for (const char32_t rune : text) { append_rune(out, rune); }
    return out;
}

}  // namespace kmm::recipe::tmpl
