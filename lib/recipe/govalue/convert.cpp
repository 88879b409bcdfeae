// SPDX-License-Identifier: Apache-2.0
#include "recipe/govalue/convert.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/format.hpp"

namespace kmm::recipe::tmpl {

void check_size(std::uint64_t bytes) {
    if (bytes > k_output_max) {
        throw Fault{fmt::format("the result would be {} bytes long", bytes), "recipe-too-large",
                    "is the number that it is given right?"};
    }
}

std::string text_of(const Value& value) {
    if (value.is_text() || value.type() == Type::bytes) { return value.text(); }
    return print_value(value);
}

std::vector<std::string> texts_of(const Value& value, Budget& budget) {
    std::vector<std::string> texts;
    const auto put = [&](std::string text) {
        budget.take(sizeof(std::string) + text_bytes(text.size()));
        texts.push_back(std::move(text));
    };
    if (value.type() == Type::bytes) {
        for (const char c : value.text()) { put(std::to_string(static_cast<unsigned char>(c))); }
    } else if (value.is_list()) {
        for (const auto& item : value.items()) {
            if (!item.is_nil()) { put(text_of(item)); }
        }
    } else if (!value.is_nil()) {
        put(text_of(value));
    }
    return texts;
}

namespace {

/// cast's trimZeroDecimal: "12.000" is "12".
std::string_view trim_zero_decimal(std::string_view text) {
    const std::size_t last = text.find_last_not_of('0');
    if (last != std::string_view::npos && last + 1 < text.size() && last > 0 && text[last] == '.') {
        return text.substr(0, last);
    }
    return text;
}

std::int64_t real_to_int(double number) {
    // As amd64 does it for what does not fit.
    if (!(number >= -9.2233720368547758e18 && number < 9.2233720368547758e18)) {
        return std::numeric_limits<std::int64_t>::min();
    }
    return static_cast<std::int64_t>(number);
}

}  // namespace

std::int64_t to_int(const Value& value) {
    switch (value.type()) {
        case Type::boolean:
        case Type::integer:
        case Type::int64:
        case Type::uint64:
        case Type::uint8: return value.as_int();
        case Type::float64: return real_to_int(value.as_real());
        case Type::string: return parse_int(trim_zero_decimal(value.text()), 0).value_or(0);
        default: return 0;
    }
}

double to_real(const Value& value) {
    switch (value.type()) {
        case Type::boolean:
        case Type::integer:
        case Type::int64: return static_cast<double>(value.as_int());
        case Type::uint64:
        case Type::uint8: return static_cast<double>(value.as_uint());
        case Type::float64: return value.as_real();
        case Type::string: return parse_real(value.text()).value_or(0);
        default: return 0;
    }
}

std::span<const Value> require_list(const Value& value, std::string_view does) {
    if (!value.is_list()) {
        if (value.is_nil()) { throw Fault{fmt::format("Cannot {} on nil", does)}; }
        throw Fault{fmt::format("Cannot {} on type {}", does, kind_name(value))};
    }
    return value.items();
}

Value list_of(const Value& value, std::string_view does) {
    if (value.type() != Type::bytes) {
        (void)require_list(value, does);
        return value;
    }
    List items;
    for (const char c : value.text()) { items.push_back(Value::integer(static_cast<unsigned char>(c), Type::uint8)); }
    return Value::list(std::move(items));
}

List items_of(const Value& value, std::string_view does) {
    const Value list = list_of(value, does);
    return List(list.items().begin(), list.items().end());
}

}  // namespace kmm::recipe::tmpl
