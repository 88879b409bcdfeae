// SPDX-License-Identifier: Apache-2.0
// Sprig's arithmetic.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/decimal.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/sprig/sprig.hpp"

namespace kmm::recipe::tmpl {

namespace {

Value int64(std::int64_t number) { return Value::integer(number, Type::int64); }

// As Go, integers wrap.
std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrap_sub(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t wrap_mul(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::int64_t divided(std::int64_t a, std::int64_t b, bool remainder) {
    if (b == 0) { throw Fault{"runtime error: integer divide by zero"}; }
    if (b == -1) { return remainder ? 0 : wrap_sub(0, a); }
    return remainder ? a % b : a / b;
}

constexpr std::uint64_t k_items_max = 1'000'000;

List until_step(std::int64_t start, std::int64_t stop, std::int64_t step) {
    List items;
    const bool down = stop < start;
    if (down ? step >= 0 : step <= 0) { return items; }
    const std::uint64_t span = down ? static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop)
                                    : static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start);
    const std::uint64_t size = down ? ~static_cast<std::uint64_t>(step) + 1 : static_cast<std::uint64_t>(step);
    if (span / size > k_items_max) {
        throw Fault{fmt::format("a list of more than {} numbers", k_items_max), "recipe-too-large", ""};
    }
    for (std::int64_t i = start; down ? i > stop : i < stop; i = wrap_add(i, step)) {
        items.push_back(Value::integer(i));
    }
    return items;
}

std::string numbers_text(const List& items) {
    std::string out;
    for (const auto& item : items) { out += (out.empty() ? "" : " ") + std::to_string(item.as_int()); }
    return out;
}

std::string sequence(const List& a) {
    const auto at = [&](std::size_t i) { return a[i].as_int(); };
    if (a.size() == 1) {
        const std::int64_t step = at(0) < 1 ? -1 : 1;
        return numbers_text(until_step(1, wrap_add(at(0), step), step));
    }
    if (a.size() == 2) {
        const std::int64_t step = at(1) < at(0) ? -1 : 1;
        return numbers_text(until_step(at(0), wrap_add(at(1), step), step));
    }
    if (a.size() == 3) {
        if (at(2) < at(0) && at(1) > 0) { return ""; }
        return numbers_text(until_step(at(0), wrap_add(at(2), at(2) < at(0) ? -1 : 1), at(1)));
    }
    return "";
}

double rounded(const List& a) {
    const double on = a.size() > 2 ? a[2].as_real() : 0.5;
    const double power = std::pow(10, static_cast<double>(a[1].as_int()));
    const double digit = power * to_real(a[0]);
    double whole = 0;
    const double part = std::modf(digit, &whole);
    return (part >= on ? std::ceil(digit) : std::floor(digit)) / power;
}

double go_max(double a, double b) {
    if (std::isinf(a) && a > 0) { return a; }
    if (std::isinf(b) && b > 0) { return b; }
    if (std::isnan(a) || std::isnan(b)) { return std::numeric_limits<double>::quiet_NaN(); }
    return a == 0 && a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}

double go_min(double a, double b) {
    if (std::isinf(a) && a < 0) { return a; }
    if (std::isinf(b) && b < 0) { return b; }
    if (std::isnan(a) || std::isnan(b)) { return std::numeric_limits<double>::quiet_NaN(); }
    return a == 0 && a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}

template <typename Step>
Value folded(const List& a, std::int64_t start, std::size_t from, Step&& step) {
    for (std::size_t i = from; i < a.size(); ++i) { start = step(start, to_int(a[i])); }
    return int64(start);
}

template <typename Step>
Value folded_real(const List& a, Step&& step) {
    double number = to_real(a[0]);
    for (std::size_t i = 1; i < a.size(); ++i) { number = step(number, to_real(a[i])); }
    return Value::real(number);
}

/// Sprig computes with decimals so that 0.1 + 0.2 is 0.3.
Value decimals(double first, const List& a, std::size_t from, char operation) {
    Decimal number = Decimal::of(first);
    for (std::size_t i = from; i < a.size(); ++i) { number = number.compute(operation, Decimal::of(to_real(a[i]))); }
    return Value::real(number.to_real());
}

}  // namespace

std::span<const Function> number_functions() {
    static const Function table[] = {
        {"atoi", "s", false, [](Call&, List& a) { return Value::integer(parse_int(a[0].text(), 10).value_or(0)); }},
        {"int64", "a", false, [](Call&, List& a) { return int64(to_int(a[0])); }},
        {"int", "a", false, [](Call&, List& a) { return Value::integer(to_int(a[0])); }},
        {"float64", "a", false, [](Call&, List& a) { return Value::real(to_real(a[0])); }},
        {"seq", "i", true, [](Call&, List& a) { return Value::string(sequence(a)); }},
        {"toDecimal", "a", false, [](Call&, List& a) { return int64(parse_int(print_value(a[0]), 8).value_or(0)); }},
        {"until", "i", false,
         [](Call&, List& a) {
             return Value::list(until_step(0, a[0].as_int(), a[0].as_int() < 0 ? -1 : 1), Type::ints);
         }},
        {"untilStep", "iii", false,
         [](Call&, List& a) {
             return Value::list(until_step(a[0].as_int(), a[1].as_int(), a[2].as_int()), Type::ints);
         }},
        {"add1", "a", false, [](Call&, List& a) { return int64(wrap_add(to_int(a[0]), 1)); }},
        {"add", "a", true, [](Call&, List& a) { return folded(a, 0, 0, wrap_add); }},
        {"sub", "aa", false, [](Call&, List& a) { return int64(wrap_sub(to_int(a[0]), to_int(a[1]))); }},
        {"div", "aa", false, [](Call&, List& a) { return int64(divided(to_int(a[0]), to_int(a[1]), false)); }},
        {"mod", "aa", false, [](Call&, List& a) { return int64(divided(to_int(a[0]), to_int(a[1]), true)); }},
        {"mul", "aa", true, [](Call&, List& a) { return folded(a, to_int(a[0]), 1, wrap_mul); }},
        {"max", "aa", true,
         [](Call&, List& a) { return folded(a, to_int(a[0]), 1, [](auto x, auto y) { return std::max(x, y); }); }},
        {"biggest", "aa", true,
         [](Call&, List& a) { return folded(a, to_int(a[0]), 1, [](auto x, auto y) { return std::max(x, y); }); }},
        {"min", "aa", true,
         [](Call&, List& a) { return folded(a, to_int(a[0]), 1, [](auto x, auto y) { return std::min(x, y); }); }},
        {"maxf", "aa", true, [](Call&, List& a) { return folded_real(a, go_max); }},
        {"minf", "aa", true, [](Call&, List& a) { return folded_real(a, go_min); }},
        {"ceil", "a", false, [](Call&, List& a) { return Value::real(std::ceil(to_real(a[0]))); }},
        {"floor", "a", false, [](Call&, List& a) { return Value::real(std::floor(to_real(a[0]))); }},
        {"round", "aif", true, [](Call&, List& a) { return Value::real(rounded(a)); }},
        {"add1f", "a", false, [](Call&, List& a) { return decimals(to_real(a[0]), {Value::real(1)}, 0, '+'); }},
        {"addf", "a", true, [](Call&, List& a) { return decimals(0, a, 0, '+'); }},
        {"subf", "aa", true, [](Call&, List& a) { return decimals(to_real(a[0]), a, 1, '-'); }},
        {"mulf", "aa", true, [](Call&, List& a) { return decimals(to_real(a[0]), a, 1, '*'); }},
        {"divf", "aa", true, [](Call&, List& a) { return decimals(to_real(a[0]), a, 1, '/'); }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
