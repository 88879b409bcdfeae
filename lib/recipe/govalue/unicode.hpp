// SPDX-License-Identifier: Apache-2.0
// Characters as Go's packages unicode and unicode/utf8 see them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kmm::recipe::tmpl {

/// What Go puts in place of bytes that are not UTF-8.
inline constexpr char32_t k_rune_error = 0xFFFD;

[[nodiscard]] bool is_print(char32_t rune) noexcept;
[[nodiscard]] bool is_letter(char32_t rune) noexcept;
[[nodiscard]] bool is_upper(char32_t rune) noexcept;
[[nodiscard]] bool is_lower(char32_t rune) noexcept;
/// ASCII digits only.
[[nodiscard]] bool is_digit(char32_t rune) noexcept;
[[nodiscard]] bool is_space(char32_t rune) noexcept;
[[nodiscard]] char32_t to_upper(char32_t rune) noexcept;
[[nodiscard]] char32_t to_lower(char32_t rune) noexcept;
[[nodiscard]] char32_t to_title(char32_t rune) noexcept;

/// One character at a place of a text.
struct Decoded {
    char32_t rune = k_rune_error;
    std::size_t width = 1;  ///< bytes; 1 for a byte that is not UTF-8
    bool valid = false;
};

/// The character at byte `at`, which must be below text.size().
[[nodiscard]] Decoded decode(std::string_view text, std::size_t at) noexcept;
/// Appends the UTF-8 of `rune`; that of k_rune_error if it is not a character.
void append_rune(std::string& out, char32_t rune);
/// All characters; each bad byte is k_rune_error.
[[nodiscard]] std::u32string runes(std::string_view text);
[[nodiscard]] std::string utf8(std::u32string_view text);

}  // namespace kmm::recipe::tmpl
