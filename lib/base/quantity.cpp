// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.hpp"

#include <algorithm>
#include <cmath>

namespace kmm::base {
namespace {

/// Takes a sign away: -1 or 1.
int take_sign(std::string_view& text) noexcept {
    if (text.empty() || (text.front() != '+' && text.front() != '-')) return 1;
    const int sign = text.front() == '-' ? -1 : 1;
    text.remove_prefix(1);
    return sign;
}

/// Takes digits away and appends them to `value`; how many there were.
std::size_t take_digits(std::string_view& text, double& value) noexcept {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    for (const char digit : text.substr(0, count)) value = value * 10 + (digit - '0');
    text.remove_prefix(count);
    return count;
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text) noexcept {
    constexpr std::string_view k_decimal = "numkMGTPE";
    constexpr std::string_view k_binary = "KMGTPE";
    const int sign = take_sign(text);
    double value = 0;
    std::size_t digits = take_digits(text, value);
    if (!text.empty() && text.front() == '.') {
        text.remove_prefix(1);
        const auto behind = take_digits(text, value);
        value *= std::pow(10, -static_cast<double>(behind));
        digits += behind;
    }
    if (digits == 0) return std::nullopt;
    value *= sign;
    if (text.empty()) return value;
    if (text.size() == 1) {
        const auto at = k_decimal.find(text.front());
        if (at == std::string_view::npos) return std::nullopt;
        // n u m are thousandths of what follows; from k on there is no unit between.
        return value * std::pow(1000, at < 3 ? static_cast<double>(at) - 3 : static_cast<double>(at) - 2);
    }
    if (text.size() == 2 && text[1] == 'i') {
        const auto at = k_binary.find(text.front());
        return at == std::string_view::npos ? std::nullopt
                                            : std::optional(value * std::pow(1024, static_cast<double>(at) + 1));
    }
    if (text.front() != 'e' && text.front() != 'E') return std::nullopt;
    text.remove_prefix(1);
    const int power_sign = take_sign(text);
    double power = 0;
    if (take_digits(text, power) == 0 || !text.empty()) return std::nullopt;
    return value * std::pow(10, power_sign * power);
}

}  // namespace kmm::base
