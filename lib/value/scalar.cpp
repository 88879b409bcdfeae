// SPDX-License-Identifier: Apache-2.0
#include "value/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::value {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Digits, point and exponent at the front of `text`; npos if it does not start with a number of that form.
struct NumberShape {
    bool number = false;
    bool integer = false;
};

/// goyaml's yamlStyleFloat without the sign: (\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
NumberShape number_shape(std::string_view text) noexcept {
    std::size_t at = 0;
    const auto digits = [&] {
        const auto start = at;
        while (at < text.size() && is_digit(text[at])) ++at;
        return at - start;
    };
    NumberShape shape;
    const auto whole = digits();
    shape.integer = whole > 0;
    if (at < text.size() && text[at] == '.') {
        ++at;
        shape.integer = false;
        if (digits() == 0 && whole == 0) return {};
    } else if (whole == 0) {
        return {};
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        shape.integer = false;
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        if (digits() == 0) return {};
    }
    shape.number = at == text.size();
    return shape.number ? shape : NumberShape{};
}

/// Of a number outside double's range: too small rather than too large.
bool is_tiny(std::string_view text) noexcept {
    const auto exponent = text.find_first_of("eE");
    if (exponent != std::string_view::npos && exponent + 1 < text.size()) return text[exponent + 1] == '-';
    return text[0] == '0' || text[0] == '.';
}

std::optional<double> to_double(std::string_view text) noexcept {
    double number = 0;
    const auto* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc::result_out_of_range) return is_tiny(text) ? std::optional(0.0) : std::nullopt;
    if (error != std::errc{} || stop != end || !std::isfinite(number)) return std::nullopt;
    return number;
}

Node signed_integer(bool negative, std::uint64_t magnitude, bool& fits) {
    constexpr auto k_limit = std::uint64_t{1} << 63U;
    fits = !negative || magnitude <= k_limit;
    if (!fits) return {};
    if (!negative) return Node(magnitude);
    if (magnitude == k_limit) return Node(std::numeric_limits<std::int64_t>::min());
    return Node(-static_cast<std::int64_t>(magnitude));
}

/// Go's strconv.ParseInt and ParseUint with base 0, `_` already removed.
std::optional<Node> go_integer(std::string_view text) {
    bool negative = false;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    int radix = 10;
    if (text.size() > 1 && text[0] == '0') {
        const char mark = static_cast<char>(text[1] | 0x20);
        radix = mark == 'x' ? 16 : mark == 'o' || is_digit(text[1]) ? 8 : mark == 'b' ? 2 : 0;
        if (radix == 0) return std::nullopt;
        text.remove_prefix(is_digit(text[1]) ? 1 : 2);
    }
    if (text.empty() || text[0] == '-' || text[0] == '+') return std::nullopt;
    const auto magnitude = base::parse_number<std::uint64_t>(text, radix);
    if (!magnitude) return std::nullopt;
    bool fits = false;
    Node node = signed_integer(negative, *magnitude, fits);
    if (!fits) return std::nullopt;
    return node;
}

template <std::size_t Count>
bool is_one_of(std::string_view text, const std::array<std::string_view, Count>& words) noexcept {
    return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 11> k_true = {"y",    "Y",    "yes",  "Yes", "YES", "true",
                                                     "True", "TRUE", "on",   "On",  "ON"};
constexpr std::array<std::string_view, 11> k_false = {"n",     "N",     "no",  "No",  "NO", "false",
                                                      "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 4> k_null = {"~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> k_not_a_number = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                                             "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

}  // namespace

std::string float_text(double number) {
    auto text = fmt::format("{}", number);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

PlainScalar resolve_plain(std::string_view text) {
    PlainScalar plain;
    if (text.empty() || is_one_of(text, k_null)) return plain;
    const char first = text[0];
    if (std::string_view("yYnNtTfFoO").find(first) != std::string_view::npos) {
        if (is_one_of(text, k_true)) return {Node(true), false};
        if (is_one_of(text, k_false)) return {Node(false), false};
    }
    if (is_one_of(text, k_not_a_number)) return {Node(text), true};
    if (is_digit(first) || first == '+' || first == '-') {
        std::string bare(text);
        bare.erase(std::remove(bare.begin(), bare.end(), '_'), bare.end());
        if (auto integer = go_integer(bare); integer) return {std::move(*integer), false};
        std::string_view magnitude = bare;
        if (first == '+' || first == '-') magnitude.remove_prefix(1);
        if (number_shape(magnitude).number) {
            if (const auto number = to_double(magnitude); number) {
                return {Node(first == '-' ? -*number : *number), false};
            }
        }
    } else if (first == '.' && number_shape(text).number) {
        if (const auto number = to_double(text); number) return {Node(*number), false};
    }
    plain.node = Node(text);
    return plain;
}

bool is_written_otherwise(const Node& node, std::string_view text) noexcept {
    return !node.is_string() && !node.is_null() && node.text() != text;
}

Node parse_json_number(std::string_view token) {
    const bool negative = !token.empty() && token[0] == '-';
    const auto magnitude = token.substr(negative ? 1 : 0);
    const auto shape = number_shape(magnitude);
    if (!shape.number || !is_digit(magnitude[0])) return {};
    if (magnitude.size() > 1 && magnitude[0] == '0' && is_digit(magnitude[1])) return {};
    const auto point = magnitude.find('.');
    if (point != std::string_view::npos && (point + 1 == magnitude.size() || !is_digit(magnitude[point + 1])))
        return {};
    if (shape.integer) {
        if (auto integer = go_integer(token); integer) return std::move(*integer);
    }
    const auto number = to_double(magnitude);
    if (!number) return {};
    return Node(negative ? -*number : *number);
}

bool needs_quotes(std::string_view text) noexcept {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text.empty() || !is_letter(text[0])) return true;
    const auto is_safe = [&](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '-'; };
    if (!std::all_of(text.begin(), text.end(), is_safe)) return true;
    if (text.size() > 5) return false;
    constexpr std::array<std::string_view, 9> k_words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
    char lower[5] = {};
    std::transform(text.begin(), text.end(), lower, [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return is_one_of(std::string_view(lower, text.size()), k_words);
}

}  // namespace kmm::value
