// SPDX-License-Identifier: Apache-2.0
// Small pure helpers on text: splitting, escaping, hex, durations, "did you mean".
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::base {

/// Splits at every `separator`; n separators give n+1 pieces, empty pieces are kept. Views into `text`, which must
/// outlive them: a std::string that dies with the expression does not compile.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
template <typename Text>
    requires std::same_as<Text, std::string>
std::vector<std::string_view> split(Text&& text, char separator) = delete;
[[nodiscard]] std::string join(std::span<const std::string> pieces, std::string_view separator);
/// Without ASCII blanks, tabs, CR and LF at both ends. A view into `text`, as of split().
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;
/// ASCII lower case only; bytes >= 0x80 stay.
[[nodiscard]] std::string to_lower(std::string_view text);

/// Lower-case hexadecimal, two digits a byte.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);
/// Bytes of an even-length hexadecimal text of either case; nullopt on any other character or length.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> from_hex(std::string_view text);

/// Standard alphabet with padding (RFC 4648 section 4).
[[nodiscard]] std::string to_base64(std::string_view bytes);
/// Accepts the standard alphabet, padded or not, ignoring white space; nullopt otherwise.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

/// Controls, invalid UTF-8 and what nobody sees (zero width, marks of direction) as \n, \t, \xNN, a backslash as \\:
/// safe to print to a terminal.
[[nodiscard]] std::string escape(std::string_view text);
/// True if `text` is valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Levenshtein distance in bytes, with transposition of neighbours counting 1. O(|a| * |b|).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);
/// The candidate nearest to `word`, at most max(1, |word| / 3) and 3 away, for one byte 0; ties: the first.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// "90s", "5m", "1h30m", "250ms" (Go's units ms s m h, integer or decimal, no sign); nullopt for anything else,
/// for "" and for more than 365 days.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
/// "1h2m3s", "3.2s" below a minute, "250ms" below a second. Never empty.
[[nodiscard]] std::string format_duration(std::chrono::milliseconds duration);
/// RFC 3339 UTC with seconds: "2026-11-21T10:41:07Z". `unix_seconds` may be negative.
[[nodiscard]] std::string format_rfc3339(std::int64_t unix_seconds);
/// The inverse for exactly that form; nullopt otherwise.
[[nodiscard]] std::optional<std::int64_t> parse_rfc3339(std::string_view text);
/// "12 B", "3.4 KiB", "2.0 GiB".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

}  // namespace kmm::base
