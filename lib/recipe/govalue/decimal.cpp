// SPDX-License-Identifier: Apache-2.0
#include "recipe/govalue/decimal.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "recipe/govalue/format.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_division_digits = 16;
constexpr std::size_t k_digits_max = 4000;

void strip(std::vector<std::uint8_t>& digits) {
    while (!digits.empty() && digits.back() == 0) { digits.pop_back(); }
}

}  // namespace

Decimal Decimal::of(double number) {
    if (!std::isfinite(number)) { throw Fault{"Cannot create a Decimal from " + format_real(number, 'g', -1)}; }
    Decimal made;
    const std::string text = format_real(number, 'e', -1);  // d.ddde+xx
    const std::size_t e = text.find('e');
    made.exponent_ = static_cast<int>(parse_int(text.substr(e + 1), 10).value_or(0));
    bool point = false;
    for (const char c : text.substr(0, e)) {
        if (c == '-') {
            made.negative_ = true;
        } else if (c == '.') {
            point = true;
        } else {
            made.digits_.insert(made.digits_.begin(), static_cast<std::uint8_t>(c - '0'));
            if (point) { --made.exponent_; }
        }
    }
    strip(made.digits_);
    return made;
}

int Decimal::compare(const Digits& a, const Digits& b) {
    if (a.size() != b.size()) { return a.size() < b.size() ? -1 : 1; }
    for (std::size_t i = a.size(); i-- > 0;) {
        if (a[i] != b[i]) { return a[i] < b[i] ? -1 : 1; }
    }
    return 0;
}

Decimal::Digits Decimal::add(const Digits& a, const Digits& b) {
    Digits out;
    int carry = 0;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
        const int sum = (i < a.size() ? a[i] : 0) + (i < b.size() ? b[i] : 0) + carry;
        out.push_back(static_cast<std::uint8_t>(sum % 10));
        carry = sum / 10;
    }
    strip(out);
    return out;
}

Decimal::Digits Decimal::subtract(const Digits& a, const Digits& b) {
    Digits out;
    int borrow = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        int left = a[i] - (i < b.size() ? b[i] : 0) - borrow;
        borrow = left < 0 ? 1 : 0;
        left += borrow * 10;
        out.push_back(static_cast<std::uint8_t>(left));
    }
    strip(out);
    return out;
}

Decimal::Digits Decimal::multiply(const Digits& a, const Digits& b) {
    if (a.size() + b.size() > k_digits_max) { throw Fault{"a decimal number is too long", "recipe-too-large", ""}; }
    std::vector<std::uint32_t> sums(a.size() + b.size() + 1, 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
        for (std::size_t k = 0; k < b.size(); ++k) { sums[i + k] += static_cast<std::uint32_t>(a[i]) * b[k]; }
    }
    Digits out;
    std::uint32_t carry = 0;
    for (const std::uint32_t sum : sums) {
        out.push_back(static_cast<std::uint8_t>((sum + carry) % 10));
        carry = (sum + carry) / 10;
    }
    strip(out);
    return out;
}

std::pair<Decimal::Digits, Decimal::Digits> Decimal::divide(const Digits& a, const Digits& b) {
    Digits quotient, rest;
    for (std::size_t i = a.size(); i-- > 0;) {
        rest.insert(rest.begin(), a[i]);
        strip(rest);
        std::uint8_t digit = 0;
        while (compare(rest, b) >= 0) {
            rest = subtract(rest, b);
            ++digit;
        }
        quotient.insert(quotient.begin(), digit);
    }
    strip(quotient);
    return {quotient, rest};
}

Decimal::Digits Decimal::shifted(int zeros) const {
    if (zeros < 0 || static_cast<std::size_t>(zeros) + digits_.size() > k_digits_max) {
        throw Fault{"a decimal number is too long", "recipe-too-large", ""};
    }
    Digits out(static_cast<std::size_t>(digits_.empty() ? 0 : zeros), 0);
    out.insert(out.end(), digits_.begin(), digits_.end());
    return out;
}

Decimal Decimal::compute(char operation, const Decimal& other) const {
    Decimal out;
    if (operation == '*') {
        out.digits_ = multiply(digits_, other.digits_);
        out.exponent_ = exponent_ + other.exponent_;
        out.negative_ = negative_ != other.negative_;
        return out;
    }
    if (operation == '/') {
        if (other.digits_.empty()) { throw Fault{"decimal division by 0"}; }
        // a / b at 16 digits behind the point.
        const int shift = exponent_ - other.exponent_ + k_division_digits;
        const Digits over = shift >= 0 ? shifted(shift) : digits_;
        const Digits under = shift >= 0 ? other.digits_ : other.shifted(-shift);
        auto [quotient, rest] = divide(over, under);
        if (compare(add(rest, rest), under) >= 0) { quotient = add(quotient, {1}); }
        out.digits_ = std::move(quotient);
        out.exponent_ = -k_division_digits;
        out.negative_ = negative_ != other.negative_;
        return out;
    }
    out.exponent_ = std::min(exponent_, other.exponent_);
    const Digits a = shifted(exponent_ - out.exponent_), b = other.shifted(other.exponent_ - out.exponent_);
    const bool other_negative = operation == '-' ? !other.negative_ : other.negative_;
    if (negative_ == other_negative) {
        out.digits_ = add(a, b);
        out.negative_ = negative_;
    } else if (compare(a, b) >= 0) {
        out.digits_ = subtract(a, b);
        out.negative_ = negative_;
    } else {
        out.digits_ = subtract(b, a);
        out.negative_ = other_negative;
    }
    return out;
}

double Decimal::to_real() const {
    if (digits_.empty()) { return 0; }
    std::string text = negative_ ? "-" : "";
    for (std::size_t i = digits_.size(); i-- > 0;) { text += static_cast<char>('0' + digits_[i]); }
    return parse_real(text + "e" + std::to_string(exponent_)).value_or(0);
}

}  // namespace kmm::recipe::tmpl
