// SPDX-License-Identifier: Apache-2.0
#include "toml/scalar.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include "base/number.hpp"

namespace kmm::toml {

namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

/// Whether `text` has the form of `pattern`, in which "0" stands for any digit.
bool has_form(std::string_view text, std::string_view pattern) {
    return std::equal(text.begin(), text.end(), pattern.begin(), pattern.end(),
                      [](char c, char wanted) { return wanted == '0' ? is_decimal(c) : c == wanted; });
}

bool is_within(std::string_view digits, int least, int most) {
    const auto number = base::parse_number<int>(digits);
    return number && *number >= least && *number <= most;
}

/// "07:32:00", "07:32:00.5".
bool is_time(std::string_view text) {
    if (text.size() < 8 || !has_form(text.substr(0, 8), "00:00:00")) return false;
    if (!is_within(text.substr(0, 2), 0, 23) || !is_within(text.substr(3, 2), 0, 59)) return false;
    if (!is_within(text.substr(6, 2), 0, 60)) return false;
    const auto rest = text.substr(8);
    return rest.empty() || (rest.size() > 1 && rest[0] == '.' && std::all_of(rest.begin() + 1, rest.end(), is_decimal));
}

bool is_offset(std::string_view text) {
    if (text == "Z" || text == "z") return true;
    return (has_form(text, "+00:00") || has_form(text, "-00:00")) && is_within(text.substr(1, 2), 0, 23) &&
           is_within(text.substr(4, 2), 0, 59);
}

bool is_date_or_time(std::string_view text) {
    if (is_time(text) || is_date(text)) return true;
    constexpr std::size_t date = 10;
    if (text.size() <= date || !is_date(text.substr(0, date))) return false;
    if (std::string_view("Tt ").find(text[date]) == std::string_view::npos) return false;
    const auto time = text.substr(date + 1);
    const auto offset = time.find_first_of("Zz+-");
    return is_time(time.substr(0, offset)) && (offset == std::string_view::npos || is_offset(time.substr(offset)));
}

/// Without the '_' between two digits; nullopt if one stands elsewhere.
std::optional<std::string> without_lines(std::string_view digits, bool is_hexadecimal = false) {
    const auto is_any_digit = [&](char c) {
        return is_decimal(c) || (is_hexadecimal && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
    };
    std::string made;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (digits[i] != '_') {
            made += digits[i];
        } else if (i == 0 || i + 1 == digits.size() || !is_any_digit(digits[i - 1]) || !is_any_digit(digits[i + 1])) {
            return std::nullopt;
        }
    }
    return made;
}

std::optional<value::Node> integer(std::string_view word, std::string_view unsigned_word) {
    for (const auto& [prefix, radix] : {std::pair("0x", 16), std::pair("0o", 8), std::pair("0b", 2)}) {
        if (!word.starts_with(prefix)) continue;
        const auto digits = without_lines(word.substr(2), radix == 16);
        const auto number = digits ? base::parse_number<std::uint64_t>(*digits, radix) : std::nullopt;
        constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        if (!number || *number > most) return std::nullopt;
        return value::Node(static_cast<std::int64_t>(*number));
    }
    if (unsigned_word.size() > 1 && unsigned_word[0] == '0') return std::nullopt;
    const auto digits = without_lines(unsigned_word);
    if (!digits) return std::nullopt;
    const auto number = base::parse_number<std::int64_t>((word.starts_with('-') ? "-" : "") + *digits);
    return number ? std::optional<value::Node>(*number) : std::nullopt;
}

/// "3.14", "1e6", "-0.5E-3".
std::optional<value::Node> floating(bool is_negative, std::string_view unsigned_word) {
    double value = 0;
    const auto plain = without_lines(unsigned_word);
    if (!plain) return std::nullopt;
    const auto exponent = plain->find_first_of("eE");
    const auto mantissa = std::string_view(*plain).substr(0, exponent);
    const auto point = mantissa.find('.');
    const auto whole = mantissa.substr(0, point);
    const auto are_digits = [](std::string_view text) {
        return !text.empty() && std::all_of(text.begin(), text.end(), is_decimal);
    };
    if (!are_digits(whole) || (whole.size() > 1 && whole[0] == '0')) return std::nullopt;
    if (point != std::string_view::npos && !are_digits(mantissa.substr(point + 1))) return std::nullopt;
    if (exponent != std::string::npos) {
        auto power = std::string_view(*plain).substr(exponent + 1);
        if (power.starts_with('+') || power.starts_with('-')) power.remove_prefix(1);
        if (!are_digits(power)) return std::nullopt;
    } else if (point == std::string_view::npos) {
        return std::nullopt;
    }
    std::string text = *plain;
    if (exponent != std::string::npos && text[exponent + 1] == '+') text.erase(exponent + 1, 1);
    const auto end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
    return value::Node(is_negative ? -value : value);
}

}  // namespace

bool is_date(std::string_view word) noexcept {
    if (!has_form(word, "0000-00-00") || !is_within(word.substr(5, 2), 1, 12)) return false;
    constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int year = base::parse_number<int>(word.substr(0, 4)).value_or(0);
    const int month = base::parse_number<int>(word.substr(5, 2)).value_or(1);
    const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return is_within(word.substr(8, 2), 1, days[month - 1] + (month == 2 && is_leap ? 1 : 0));
}

bool append_character(std::string& text, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    const auto tail = [&](unsigned shift) { put(0x80U | ((code >> shift) & 0x3FU)); };
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0U | (code >> 6U));
        tail(0);
    } else if (code < 0x10000) {
        put(0xE0U | (code >> 12U));
        tail(6);
        tail(0);
    } else {
        put(0xF0U | (code >> 18U));
        tail(12);
        tail(6);
        tail(0);
    }
    return true;
}

std::optional<value::Node> read_word(std::string_view word) {
    if (word == "true" || word == "false") return value::Node(word == "true");
    const bool is_signed = word.starts_with('-') || word.starts_with('+');
    const auto unsigned_word = word.substr(is_signed ? 1 : 0);
    if (unsigned_word.empty()) return std::nullopt;
    if (is_decimal(unsigned_word[0])) {
        if (!is_signed && is_date_or_time(word)) return value::Node(word);
        if (auto number = integer(word, unsigned_word)) return number;
    }
    if (unsigned_word == "inf" || unsigned_word == "nan") return value::Node(word);
    return floating(word.starts_with('-'), unsigned_word);
}

}  // namespace kmm::toml
