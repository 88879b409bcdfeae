// SPDX-License-Identifier: Apache-2.0
// Decimal numbers of any length, as far as Sprig's addf, subf, mulf and divf need them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kmm::recipe::tmpl {

/// digits * 10^exponent. Throws Fault "recipe-too-large" beyond some thousand digits.
class Decimal {
public:
    /// The shortest decimal that reads back as `number`. Throws Fault for infinities and NaN, where Sprig panics.
    [[nodiscard]] static Decimal of(double number);
    /// `operation` is + - * or /; a quotient has at most 16 digits behind the point, rounded half away from zero.
    [[nodiscard]] Decimal compute(char operation, const Decimal& other) const;
    [[nodiscard]] double to_real() const;

private:
    using Digits = std::vector<std::uint8_t>;  // least first, no zeros in front
    bool negative_ = false;
    Digits digits_;
    int exponent_ = 0;

    static int compare(const Digits& a, const Digits& b);
    static Digits add(const Digits& a, const Digits& b);
    static Digits subtract(const Digits& a, const Digits& b);
    static Digits multiply(const Digits& a, const Digits& b);
    /// Quotient and remainder.
    static std::pair<Digits, Digits> divide(const Digits& a, const Digits& b);
    Digits shifted(int zeros) const;
};

}  // namespace kmm::recipe::tmpl
