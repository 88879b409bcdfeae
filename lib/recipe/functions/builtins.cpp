// SPDX-License-Identifier: Apache-2.0
// The functions that Go's text/template itself has.
#include <algorithm>

#include <fmt/format.h>

#include "recipe/functions/functions.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

enum class Basic { none, boolean, integer, uint, real, text };

Basic basic_kind(const Value& value) {
    switch (value.type()) {
        case Type::boolean: return Basic::boolean;
        case Type::integer:
        case Type::int64: return Basic::integer;
        case Type::uint64:
        case Type::uint8: return Basic::uint;
        case Type::float64: return Basic::real;
        case Type::string: return Basic::text;
        default: return Basic::none;
    }
}

Fault incompatible(const Value& a, const Value& b) {
    return {fmt::format("incompatible types for comparison: {} and {}", type_name(a), type_name(b)), "template-error",
            "numbers of values files are float64, those of templates int: compare after int, int64 or float64"};
}

bool basic_equal(Basic kind, const Value& a, const Value& b) {
    if (kind == Basic::real) { return a.as_real() == b.as_real(); }
    if (kind == Basic::text) { return a.text() == b.text(); }
    return a.as_int() == b.as_int();
}

bool is_nil_value(const Value& value) {
    return value.is_nil() || ((value.is_map() || value.is_list() || value.type() == Type::bytes) && value.is_none());
}

bool equal_one(const Value& a, const Value& b) {
    const Basic ka = basic_kind(a), kb = basic_kind(b);
    if (ka != kb) {
        if (ka == Basic::integer && kb == Basic::uint) { return a.as_int() >= 0 && a.as_uint() == b.as_uint(); }
        if (ka == Basic::uint && kb == Basic::integer) { return b.as_int() >= 0 && a.as_uint() == b.as_uint(); }
        if (!a.is_nil() && !b.is_nil()) { throw incompatible(a, b); }
        return false;
    }
    if (ka != Basic::none) { return basic_equal(ka, a, b); }
    // Maps and slices can only be compared with nil.
    const bool a_nil = is_nil_value(a), b_nil = is_nil_value(b);
    if (!a_nil && !b_nil) {
        if (a.type() == Type::time && b.type() == Type::time) { return deep_equal(a, b); }
        if (a.type() == Type::record && b.type() == Type::record) { return a.same_ref(b); }
        throw Fault{fmt::format("non-comparable types {}, {}", type_name(a), type_name(b)), "template-error",
                    "deepEqual compares lists and maps"};
    }
    return a_nil == b_nil;
}

bool less_one(const Value& a, const Value& b) {
    const Basic ka = basic_kind(a), kb = basic_kind(b);
    if (ka == Basic::none || kb == Basic::none) { throw Fault{"invalid type for comparison"}; }
    if (ka != kb) {
        if (ka == Basic::integer && kb == Basic::uint) { return a.as_int() < 0 || a.as_uint() < b.as_uint(); }
        if (ka == Basic::uint && kb == Basic::integer) { return b.as_int() >= 0 && a.as_uint() < b.as_uint(); }
        throw incompatible(a, b);
    }
    switch (ka) {
        case Basic::real: return a.as_real() < b.as_real();
        case Basic::integer: return a.as_int() < b.as_int();
        case Basic::uint: return a.as_uint() < b.as_uint();
        case Basic::text: return a.text() < b.text();
        default: throw Fault{"invalid type for comparison"};
    }
}

bool equal_any(const List& a) {
    if (a.size() < 2) { throw Fault{"missing argument for comparison"}; }
    for (std::size_t i = 1; i < a.size(); ++i) {
        if (equal_one(a[0], a[i])) { return true; }
    }
    return false;
}

bool less_or_equal(const Value& a, const Value& b) { return less_one(a, b) || equal_one(a, b); }

std::int64_t index_number(const Value& index, std::size_t size) {
    if (index.is_nil()) { throw Fault{"cannot index slice/array with nil"}; }
    if (!index.is_int() && !index.is_uint()) {
        throw Fault{fmt::format("cannot index slice/array with type {}", type_name(index)), "template-error",
                    "convert the number with int"};
    }
    if (index.as_int() < 0 || static_cast<std::uint64_t>(index.as_int()) >= size) {
        throw Fault{fmt::format("index out of range: {} (of {})", index.as_int(), size)};
    }
    return index.as_int();
}

Value index_into(Value item, const List& indexes) {
    if (item.is_nil()) { throw Fault{"index of untyped nil"}; }
    for (std::size_t i = 1; i < indexes.size(); ++i) {
        const Value& index = indexes[i];
        if (item.is_nil()) { throw Fault{"index of nil pointer"}; }
        if (item.is_list()) {
            const auto at = static_cast<std::size_t>(index_number(index, item.items().size()));
            const Value found = item.items()[at];
            item = found;
        } else if (item.is_text() || item.type() == Type::bytes) {
            const auto at = static_cast<std::size_t>(index_number(index, item.text().size()));
            item = Value::integer(static_cast<unsigned char>(item.text()[at]), Type::uint8);
        } else if (item.is_map()) {
            if (index.is_nil()) { throw Fault{"value is nil; should be of type string"}; }
            if (!index.is_text()) { throw Fault{fmt::format("value has type {}; should be string", type_name(index))}; }
            const auto found = item.members().find(index.text());
            const Value next = found != item.members().end() ? found->second : zero_element(item.type());
            item = next;
        } else {
            throw Fault{fmt::format("can't index item of type {}", type_name(item))};
        }
    }
    return item;
}

std::int64_t length_of(const Value& item) {
    if (item.is_nil()) { throw Fault{"len of nil pointer"}; }
    if (item.is_text() || item.type() == Type::bytes) { return static_cast<std::int64_t>(item.text().size()); }
    if (item.is_list()) { return static_cast<std::int64_t>(item.items().size()); }
    if (item.is_map()) { return static_cast<std::int64_t>(item.members().size()); }
    throw Fault{fmt::format("len of type {}", type_name(item))};
}

/// evalArgs of text/template: the text alone, or Sprint of what actions print.
std::string joined(List a) {
    for (auto& one : a) { one = printable(one); }
    return a.size() == 1 && a[0].is_text() ? a[0].text() : sprint(a);
}

std::string html_escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '"': out += "&#34;"; break;
            case '\'': out += "&#39;"; break;
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '\0': out += "\xEF\xBF\xBD"; break;
            default: out += c;
        }
    }
    return out;
}

std::string js_escaped(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const Decoded d = decode(text, at);
        const std::string_view bytes = text.substr(at, d.width);
        at += d.width;
        if (d.rune >= 0x80) {
            if (!d.valid) {
                out += "\\uFFFD";
            } else if (is_print(d.rune)) {
                out += bytes;
            } else {
                out += fmt::format("\\u{:04X}", static_cast<std::uint32_t>(d.rune));
            }
            continue;
        }
        switch (bytes[0]) {
            case '\\': out += "\\\\"; break;
            case '\'': out += "\\'"; break;
            case '"': out += "\\\""; break;
            case '<': out += "\\u003C"; break;
            case '>': out += "\\u003E"; break;
            case '&': out += "\\u0026"; break;
            case '=': out += "\\u003D"; break;
            default:
                if (d.rune < ' ' || d.rune == 0x7f) {
                    out += fmt::format("\\u{:04X}", static_cast<std::uint32_t>(d.rune));
                } else {
                    out += bytes;
                }
        }
    }
    return out;
}

}  // namespace

std::span<const Function> builtin_functions() {
    static const Function table[] = {
        {"and", "aa", true, nullptr},
        {"or", "aa", true, nullptr},
        {"not", "a", false, [](Call&, List& a) { return Value::boolean(!truth(a[0])); }},
        {"call", "aa", true,
         [](Call&, List& a) -> Value { throw Fault{fmt::format("call of non-function of type {}", type_name(a[0]))}; }},
        {"html", "a", true, [](Call&, List& a) { return Value::string(html_escaped(joined(a))); }},
        {"js", "a", true, [](Call&, List& a) { return Value::string(js_escaped(joined(a))); }},
        {"urlquery", "a", true, [](Call&, List& a) { return Value::string(query_escaped(joined(a))); }},
        {"index", "aa", true, [](Call&, List& a) { return index_into(a[0], a); }},
        {"len", "a", false, [](Call&, List& a) { return Value::integer(length_of(a[0])); }},
        {"print", "a", true, [](Call&, List& a) { return Value::string(sprint(a)); }},
        {"println", "a", true, [](Call&, List& a) { return Value::string(sprintln(a)); }},
        {"printf", "sa", true,
         [](Call&, List& a) { return Value::string(sprintf(a[0].text(), List(a.begin() + 1, a.end()))); }},
        {"eq", "aa", true, [](Call&, List& a) { return Value::boolean(equal_any(a)); }},
        {"ne", "aa", false, [](Call&, List& a) { return Value::boolean(!equal_one(a[0], a[1])); }},
        {"lt", "aa", false, [](Call&, List& a) { return Value::boolean(less_one(a[0], a[1])); }},
        {"le", "aa", false, [](Call&, List& a) { return Value::boolean(less_or_equal(a[0], a[1])); }},
        {"gt", "aa", false, [](Call&, List& a) { return Value::boolean(!less_or_equal(a[0], a[1])); }},
        {"ge", "aa", false, [](Call&, List& a) { return Value::boolean(!less_one(a[0], a[1])); }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
