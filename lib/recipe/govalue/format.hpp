// SPDX-License-Identifier: Apache-2.0
// Numbers and texts written as Go's packages strconv and fmt write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

/// strconv.FormatFloat: `verb` is b, e, E, f, F, g, G, x or X; `precision` -1 writes the fewest digits that read back
/// as `number`.
[[nodiscard]] std::string format_real(double number, char verb, int precision);
/// strconv.ParseFloat for decimal and hexadecimal numbers, inf and nan; nullopt for other text and for what overflows.
[[nodiscard]] std::optional<double> parse_real(std::string_view text);
/// strconv.ParseInt and ParseUint. Base 0 reads the prefixes 0x, 0o, 0b, 0 and lets '_' stand between digits.
[[nodiscard]] std::optional<std::int64_t> parse_int(std::string_view text, int base);
[[nodiscard]] std::optional<std::uint64_t> parse_uint(std::string_view text, int base);
/// strconv.Quote, or QuoteToASCII.
[[nodiscard]] std::string quote_text(std::string_view text, bool ascii = false);
/// strconv.QuoteRune, or QuoteRuneToASCII.
[[nodiscard]] std::string quote_rune(char32_t rune, bool ascii = false);
/// What an action prints in place of a value: a text for nil, the struct for a pointer to one that has no text.
[[nodiscard]] Value printable(const Value& value);
/// What `%v` prints.
[[nodiscard]] std::string print_value(const Value& value);
/// The same, with k_address where Go prints the address of a pointer, another each time.
[[nodiscard]] std::string print_with_addresses(const Value& value);
inline constexpr std::string_view k_address = "0xkmm-address";
/// fmt.Sprint: a space between two arguments that are both no strings.
[[nodiscard]] std::string sprint(const List& arguments);
/// fmt.Sprintln.
[[nodiscard]] std::string sprintln(const List& arguments);
/// fmt.Sprintf with all of Go's verbs and flags; wrong verbs come out as Go's "%!d(string=x)". Throws Fault
/// "recipe-too-large" for a width or precision over a million, which Go refuses in its own way.
[[nodiscard]] std::string sprintf(std::string_view format, const List& arguments);

}  // namespace kmm::recipe::tmpl
