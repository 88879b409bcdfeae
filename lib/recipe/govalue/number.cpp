// SPDX-License-Identifier: Apache-2.0
// Go's strconv: numbers and quoted texts.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

/// The digits of a number without its point, and the power of ten that the point stands at: 0.DIGITS * 10^point.
struct Digits {
    std::string digits;
    int point = 0;
};

/// `text` is what to_chars writes as scientific.
Digits take_digits(std::string_view text) {
    Digits result;
    const std::size_t e = text.find('e');
    for (const char c : text.substr(0, e)) {
        if (c != '.') { result.digits += c; }
    }
    int exponent = 0;
    std::string_view tail = text.substr(e + 1);
    if (tail.front() == '+') { tail.remove_prefix(1); }
    std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
    result.point = exponent + 1;
    return result;
}

std::string scientific(double number, int precision) {
    std::string buffer(static_cast<std::size_t>(precision < 0 ? 64 : precision + 64), '\0');
    const auto done = precision < 0 ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                                    std::chars_format::scientific)
                                    : std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                                    std::chars_format::scientific, precision);
    buffer.resize(static_cast<std::size_t>(done.ptr - buffer.data()));
    return buffer;
}

/// d.ddde+dd with `precision` digits behind the point.
std::string exponent_form(const Digits& d, int precision, char letter) {
    std::string out(1, d.digits.empty() ? '0' : d.digits[0]);
    if (precision > 0) {
        out += '.';
        std::string tail = d.digits.substr(std::min<std::size_t>(1, d.digits.size()));
        tail.resize(static_cast<std::size_t>(precision), '0');
        out += tail;
    }
    const int exponent = d.digits.find_first_not_of('0') == std::string::npos ? 0 : d.point - 1;
    out += letter;
    out += exponent < 0 ? '-' : '+';
    const std::string number = std::to_string(exponent < 0 ? -exponent : exponent);
    return out + (number.size() < 2 ? "0" : "") + number;
}

std::string point_form(const Digits& d, int precision) {
    std::string out;
    if (d.point > 0) {
        for (int i = 0; i < d.point; ++i) {
            out += static_cast<std::size_t>(i) < d.digits.size() ? d.digits[static_cast<std::size_t>(i)] : '0';
        }
    } else {
        out = "0";
    }
    if (precision > 0) {
        out += '.';
        for (int i = 0; i < precision; ++i) {
            const int at = d.point + i;
            out += at >= 0 && static_cast<std::size_t>(at) < d.digits.size() ? d.digits[static_cast<std::size_t>(at)]
                                                                             : '0';
        }
    }
    return out;
}

std::string fixed(double number, int precision) {
    std::string buffer(static_cast<std::size_t>(precision) + 400, '\0');
    const auto done =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed, precision);
    buffer.resize(static_cast<std::size_t>(done.ptr - buffer.data()));
    return buffer;
}

}  // namespace

namespace {

constexpr int k_mantissa_bits = 52;

/// The bits of a number that is neither infinite nor NaN: mantissa * 2^(exponent - 52).
std::pair<std::uint64_t, int> take_bits(double number) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    const auto written = static_cast<int>((bits >> 52U) & 0x7FFU);
    const std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52U) - 1);
    return {written == 0 ? mantissa : mantissa | (std::uint64_t{1} << 52U), (written == 0 ? 1 : written) - 1023};
}

/// "4503599627370496p-52".
std::string binary_form(double number) {
    const auto [mantissa, exponent] = take_bits(number);
    const int power = exponent - k_mantissa_bits;
    return std::to_string(mantissa) + 'p' + (power >= 0 ? "+" : "") + std::to_string(power);
}

/// "0x1.8p+01"
std::string hexadecimal_form(double number, char verb, int precision) {
    constexpr std::uint64_t k_one = std::uint64_t{1} << 60U;
    auto [mantissa, exponent] = take_bits(number);
    if (mantissa == 0) { exponent = 0; }
    mantissa <<= 60U - static_cast<unsigned>(k_mantissa_bits);
    for (; mantissa != 0 && (mantissa & k_one) == 0; --exponent) { mantissa <<= 1U; }
    if (precision >= 0 && precision < 15) {
        const unsigned shift = static_cast<unsigned>(precision) * 4;
        const std::uint64_t rest = (mantissa << shift) & (k_one - 1);
        mantissa >>= 60 - shift;
        if ((rest | (mantissa & 1U)) > (k_one >> 1U)) { ++mantissa; }
        mantissa <<= 60 - shift;
        if ((mantissa & (k_one << 1U)) != 0) {
            mantissa >>= 1U;
            ++exponent;
        }
    }
    const std::string_view digits = verb == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    std::string text = {'0', verb, static_cast<char>('0' + ((mantissa >> 60U) & 1U))};
    mantissa <<= 4U;
    if (precision > 0 || (precision < 0 && mantissa != 0)) { text += '.'; }
    for (int i = 0; precision < 0 ? mantissa != 0 : i < precision; ++i, mantissa <<= 4U) {
        text += digits[mantissa >> 60U];
    }
    const std::string power = std::to_string(std::abs(exponent));
    return text + (verb == 'X' ? 'P' : 'p') + (exponent < 0 ? '-' : '+') + (power.size() < 2 ? "0" : "") + power;
}

}  // namespace

std::string format_real(double number, char verb, int precision) {
    if (std::isnan(number)) { return "NaN"; }
    if (std::isinf(number)) { return number < 0 ? "-Inf" : "+Inf"; }
    const std::string sign = std::signbit(number) ? "-" : "";
    const double size = std::fabs(number);
    if (verb == 'b') { return sign + binary_form(size); }
    if (verb == 'x' || verb == 'X') { return sign + hexadecimal_form(size, verb, precision); }
    const bool shortest = precision < 0;
    if (verb == 'f' || verb == 'F') {
        if (!shortest) { return sign + fixed(size, precision); }
        const Digits d = take_digits(scientific(size, -1));
        return sign + point_form(d, std::max(static_cast<int>(d.digits.size()) - d.point, 0));
    }
    if (verb == 'e' || verb == 'E') {
        const Digits d = take_digits(scientific(size, precision));
        return sign + exponent_form(d, shortest ? static_cast<int>(d.digits.size()) - 1 : precision, verb);
    }
    if (precision == 0) { precision = 1; }
    Digits d = take_digits(scientific(size, shortest ? -1 : precision - 1));
    while (d.digits.size() > 1 && d.digits.back() == '0') { d.digits.pop_back(); }
    const int count = static_cast<int>(d.digits.size());
    int limit = shortest ? 6 : precision;
    if (!shortest && limit > count && count >= d.point) { limit = count; }
    const int exponent = size == 0 ? 0 : d.point - 1;
    if (exponent < -4 || exponent >= limit) { return sign + exponent_form(d, count - 1, verb == 'G' ? 'E' : 'e'); }
    return sign + (size == 0 ? "0" : point_form(d, std::max(count - d.point, 0)));
}

namespace {

/// Whether '_' stands between digits only, as base 0 allows; removes them.
bool drop_underscores(std::string& text) {
    if (text.find('_') == std::string::npos) { return true; }
    char before = '^';
    std::size_t start = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    bool hex = false;
    if (text.size() >= start + 2 && text[start] == '0') {
        const char base = static_cast<char>(text[start + 1] | 0x20);
        if (base == 'b' || base == 'o' || base == 'x') {
            start += 2;
            before = '0';
            hex = base == 'x';
        }
    }
    std::string kept = text.substr(0, start);
    for (std::size_t i = start; i < text.size(); ++i) {
        const char c = text[i];
        const char lower = static_cast<char>(c | 0x20);
        if ((c >= '0' && c <= '9') || (hex && lower >= 'a' && lower <= 'f')) {
            before = '0';
        } else if (c == '_') {
            if (before != '0') { return false; }
            before = '_';
            continue;
        } else {
            if (before == '_') { return false; }
            before = '!';
        }
        kept += c;
    }
    if (before == '_') { return false; }
    text = std::move(kept);
    return true;
}

std::optional<std::uint64_t> parse_digits(std::string text, int base) {
    if (base == 0) {
        if (!drop_underscores(text)) { return std::nullopt; }
        base = 10;
        if (text.size() > 1 && text[0] == '0') {
            const char letter = static_cast<char>(text[1] | 0x20);
            base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
            text.erase(0, text.size() >= 3 && (letter == 'x' || letter == 'b' || letter == 'o') ? 2 : 1);
        }
    }
    std::uint64_t number = 0;
    const auto done = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (done.ec != std::errc{} || done.ptr != text.data() + text.size()) { return std::nullopt; }
    return number;
}

}  // namespace

std::optional<std::uint64_t> parse_uint(std::string_view text, int base) {
    return parse_digits(std::string(text), base);
}

std::optional<std::int64_t> parse_int(std::string_view text, int base) {
    const bool negative = !text.empty() && text[0] == '-';
    if (negative || (!text.empty() && text[0] == '+')) { text.remove_prefix(1); }
    const auto size = parse_digits(std::string(text), base);
    constexpr std::uint64_t k_edge = std::uint64_t{1} << 63U;
    if (!size || *size > k_edge || (!negative && *size == k_edge)) { return std::nullopt; }
    return negative ? static_cast<std::int64_t>(~*size + 1) : static_cast<std::int64_t>(*size);
}

namespace {

/// Of a number that is not zero, without a sign: by the place of its first digit that is not zero, and its exponent.
bool is_below_one(std::string_view digits, bool hex) {
    const auto end = std::min(digits.find(hex ? 'p' : 'e'), digits.size());
    const auto mantissa = digits.substr(0, end);
    const auto point = static_cast<std::int64_t>(std::min(mantissa.find('.'), mantissa.size()));
    const auto first = static_cast<std::int64_t>(mantissa.find_first_not_of("0."));
    auto exponent_text = digits.substr(std::min(end + 1, digits.size()));
    const bool is_negative = exponent_text.starts_with('-');
    if (is_negative || exponent_text.starts_with('+')) { exponent_text.remove_prefix(1); }
    constexpr std::int64_t k_beyond_any_text = std::int64_t{1} << 50U;
    std::int64_t exponent = 0;
    const auto* last = exponent_text.data() + exponent_text.size();
    if (std::from_chars(exponent_text.data(), last, exponent).ec == std::errc::result_out_of_range) {
        exponent = k_beyond_any_text;
    }
    exponent = std::min(exponent, k_beyond_any_text);
    return (point - first) * (hex ? 4 : 1) + (is_negative ? -exponent : exponent) <= 0;
}

}  // namespace

std::optional<double> parse_real(std::string_view given) {
    std::string text(given);
    std::string lower;
    for (const char c : text) { lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c); }
    const bool negative = !lower.empty() && lower[0] == '-';
    const std::string bare = !lower.empty() && (lower[0] == '-' || lower[0] == '+') ? lower.substr(1) : lower;
    const double sign = negative ? -1 : 1;
    if (bare == "inf" || bare == "infinity") { return sign * std::numeric_limits<double>::infinity(); }
    if (lower == "nan") { return std::numeric_limits<double>::quiet_NaN(); }
    const bool hex = bare.starts_with("0x");
    if (bare.find('_') != std::string::npos) {
        text = bare;
        if (!drop_underscores(text)) { return std::nullopt; }
    }
    std::string digits = hex ? bare.substr(2) : bare;
    std::erase(digits, '_');
    if (digits.empty() || digits.find_first_not_of("0123456789abcdef.+-p") != std::string::npos) {
        return std::nullopt;
    }
    if (digits[0] == '+' || digits[0] == '-') { return std::nullopt; }
    if (hex && digits.find('p') == std::string::npos) { return std::nullopt; }
    double number = 0;
    const auto done = std::from_chars(digits.data(), digits.data() + digits.size(), number,
                                      hex ? std::chars_format::hex : std::chars_format::general);
    if (done.ptr != digits.data() + digits.size()) { return std::nullopt; }
    if (done.ec == std::errc::result_out_of_range) {
        // Too small is zero, too large is an error, as in Go.
        if (!is_below_one(digits, hex)) { return std::nullopt; }
        number = 0;
    } else if (done.ec != std::errc{}) {
        return std::nullopt;
    }
    return sign * number;
}

namespace {

void append_hex(std::string& out, std::uint32_t number, int digits) {
    for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
        out += "0123456789abcdef"[(number >> static_cast<unsigned>(shift)) & 0xFU];
    }
}

void append_escaped(std::string& out, char32_t rune, char quote, bool ascii) {
    if (rune == static_cast<char32_t>(static_cast<unsigned char>(quote)) || rune == '\\') {
        out += '\\';
        append_rune(out, rune);
        return;
    }
    if (ascii ? rune < 0x80 && is_print(rune) : is_print(rune)) {
        append_rune(out, rune);
        return;
    }
    constexpr std::string_view k_letters_of = "abtnvfr";
    if (rune >= 7 && rune <= 13) {
        out += '\\';
        out += k_letters_of[rune - 7];
    } else if (rune < ' ' || rune == 0x7f) {
        out += "\\x";
        append_hex(out, rune, 2);
    } else if (rune < 0x10000) {
        out += "\\u";
        append_hex(out, rune, 4);
    } else {
        out += "\\U";
        append_hex(out, rune, 8);
    }
}

}  // namespace

std::string quote_text(std::string_view text, bool ascii) {
    std::string out = "\"";
    for (std::size_t at = 0; at < text.size();) {
        const Decoded d = decode(text, at);
        if (!d.valid) {
            out += "\\x";
            append_hex(out, static_cast<unsigned char>(text[at]), 2);
        } else {
            append_escaped(out, d.rune, '"', ascii);
        }
        at += d.width;
    }
    return out + '"';
}

std::string quote_rune(char32_t rune, bool ascii) {
    if (rune > 0x10FFFF || (rune >= 0xD800 && rune < 0xE000)) { rune = k_rune_error; }
    std::string out = "'";
    append_escaped(out, rune, '\'', ascii);
    return out + '\'';
}

}  // namespace kmm::recipe::tmpl
