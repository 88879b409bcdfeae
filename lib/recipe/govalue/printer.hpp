// SPDX-License-Identifier: Apache-2.0
// What fmt's verbs make of one value. Used by print_value and sprintf alone.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

inline constexpr int k_width_max = 1'000'000;

struct PrintFlags {
    bool minus = false, plus = false, sharp = false, space = false, zero = false;
    bool has_width = false, has_precision = false;
    int width = 0, precision = 0;
    bool plus_v = false, sharp_v = false;
};

/// One call of Sprintf; also prints single values.
class Printer {
public:
    std::string out;
    bool allow_addresses = false;  ///< print k_address where Go prints that of a pointer; else that is a Fault

    void pad(std::string_view text) {
        if (!flags_.has_width || flags_.width == 0) {
            out += text;
            return;
        }
        std::size_t length = 0;
        for (std::size_t at = 0; at < text.size(); at += decode(text, at).width) { ++length; }
        const auto width = static_cast<std::size_t>(flags_.width);
        const std::size_t missing = width > length ? width - length : 0;
        if (flags_.minus) {
            out += text;
            out.append(missing, ' ');
        } else {
            out.append(missing, flags_.zero ? '0' : ' ');
            out += text;
        }
    }

    void integer(std::uint64_t size, bool negative, bool is_signed, char verb) {
        switch (verb) {
            case 'v':
                if (flags_.sharp_v && !is_signed) { return hex_unsigned(size); }
                return number(size, negative, 10, 'v');
            case 'd': return number(size, negative, 10, verb);
            case 'b': return number(size, negative, 2, verb);
            case 'o':
            case 'O': return number(size, negative, 8, verb);
            case 'x':
            case 'X': return number(size, negative, 16, verb);
            case 'c':
                return pad_rune(negative ? k_rune_error
                                         : static_cast<char32_t>(std::min<std::uint64_t>(size, 0x110000)));
            case 'q': {
                const char32_t rune = negative || size > 0x10FFFF ? k_rune_error : static_cast<char32_t>(size);
                return pad(quote_rune(rune, flags_.plus));
            }
            case 'U': return unicode(negative ? ~size + 1 : size);
            default: break;
        }
    }

    void real(double number, char verb) {
        switch (verb) {
            case 'v': return format_float(number, 'g', -1);
            case 'e':
            case 'E':
            case 'f':
            case 'F': return format_float(number, verb == 'F' ? 'f' : verb, 6);
            default: return format_float(number, verb, -1);
        }
    }

    void text(std::string_view s, char verb) {
        switch (verb) {
            case 'v':
                if (flags_.sharp_v) { return quoted(s); }
                return pad(cut(s));
            case 's': return pad(cut(s));
            case 'x':
            case 'X': return hex_text(s, verb == 'X');
            default: return quoted(s);
        }
    }

    /// "%!verb(type=value)".
    void bad_verb(char32_t verb, const Value& arg) {
        out += "%!";
        append_rune(out, verb);
        if (arg.is_nil()) {
            out += "(<nil>)";
            return;
        }
        out += '(' + type_name(arg) + '=';
        value(arg, 'v', 0);  // with the flags of the verb, as Go
        out += ')';
    }

    void argument(const Value& arg, char32_t verb) {
        if (verb == 'T') { return text(type_name(arg), 's'); }
        if (arg.is_nil()) {
            if (verb == 'v') { return pad("<nil>"); }
            return bad_verb(verb, arg);
        }
        if (verb == 'p') {
            // Addresses differ from run to run; only what has none is the same each time.
            if (arg.is_map() || arg.is_list() || arg.type() == Type::bytes) {
                throw Fault{"%p prints an address, which is not deterministic", "not-deterministic",
                            "print the value with %v"};
            }
            return bad_verb(verb, arg);
        }
        value(arg, verb, 0);
    }

    void value(const Value& arg, char32_t verb, int depth) {
        const char v = verb < 0x80 ? static_cast<char>(verb) : '\0';
        const auto is_one_of = [&](std::string_view verbs) {
            return v != '\0' && verbs.find(v) != std::string_view::npos;
        };
        switch (arg.type()) {
            case Type::invalid:
            case Type::nil:
                if (depth > 0) {
                    out += flags_.sharp_v ? "interface {}(nil)" : "<nil>";
                } else {
                    pad("<nil>");
                }
                return;
            case Type::boolean:
                if (is_one_of("tv")) { return pad(arg.as_bool() ? "true" : "false"); }
                return bad_verb(verb, arg);
            case Type::integer:
            case Type::int64:
                if (is_one_of("vdbooOxXcqU")) {
                    const bool negative = arg.as_int() < 0;
                    return integer(negative ? ~arg.as_uint() + 1 : arg.as_uint(), negative, true, v);
                }
                return bad_verb(verb, arg);
            case Type::uint64:
            case Type::uint8:
                if (is_one_of("vdbooOxXcqU")) { return integer(arg.as_uint(), false, false, v); }
                return bad_verb(verb, arg);
            case Type::float64:
                if (is_one_of("vbgGxXfFeE")) { return real(arg.as_real(), v); }
                return bad_verb(verb, arg);
            case Type::string:
                if (is_one_of("vsxXq")) { return text(arg.text(), v); }
                return bad_verb(verb, arg);
            case Type::bytes: return bytes(arg, verb, v);
            case Type::time:
                if (is_one_of("vsxXq")) { return text(time_text(arg.as_time()), v); }
                return bad_verb(verb, arg);
            case Type::record: return record(arg, verb, v, depth);
            default: break;
        }
        if (arg.is_map()) { return map(arg, verb, depth); }
        list(arg, verb, depth);
    }

    PrintFlags flags_;

private:
    std::string_view cut(std::string_view s) const {
        if (!flags_.has_precision) { return s; }
        int left = flags_.precision;
        for (std::size_t at = 0; at < s.size(); at += decode(s, at).width) {
            if (left-- <= 0) { return s.substr(0, at); }
        }
        return s;
    }

    /// strconv.CanBackquote.
    static bool can_backquote(std::string_view s) {
        for (std::size_t at = 0; at < s.size();) {
            const auto one = decode(s, at);
            at += one.width;
            const bool is_control = one.rune < ' ' && one.rune != '\t';
            if (one.width == 1 && (one.rune >= 0x7f || is_control || one.rune == '`')) { return false; }
            if (one.rune == 0xfeff) { return false; }
        }
        return true;
    }

    void quoted(std::string_view given) {
        const std::string_view s = cut(given);
        if (flags_.sharp && can_backquote(s)) { return pad('`' + std::string(s) + '`'); }
        pad(quote_text(s, flags_.plus));
    }

    void pad_rune(char32_t rune) {
        std::string text;
        append_rune(text, rune);
        pad(text);
    }

    void unicode(std::uint64_t size) {
        std::string digits;
        do { digits.insert(digits.begin(), "0123456789ABCDEF"[size & 0xFU]); } while ((size >>= 4U) != 0);
        const std::size_t least =
            flags_.has_precision && flags_.precision > 4 ? static_cast<std::size_t>(flags_.precision) : 4;
        while (digits.size() < least) { digits.insert(digits.begin(), '0'); }
        std::string text = "U+" + digits;
        const auto rune = static_cast<char32_t>(parse_uint(digits, 16).value_or(0));
        if (flags_.sharp && rune <= 0x10FFFF && is_print(rune)) {
            text += " '";
            append_rune(text, rune);
            text += '\'';
        }
        const bool zero = flags_.zero;
        flags_.zero = false;
        pad(text);
        flags_.zero = zero;
    }

    void hex_unsigned(std::uint64_t size) {
        const bool sharp = flags_.sharp;
        flags_.sharp = true;
        number(size, false, 16, 'v');
        flags_.sharp = sharp;
    }

    void number(std::uint64_t size, bool negative, unsigned base, char verb) {
        std::size_t precision = 0;
        if (flags_.has_precision) {
            precision = static_cast<std::size_t>(flags_.precision);
            if (precision == 0 && size == 0) {
                const bool zero = flags_.zero;
                flags_.zero = false;
                if (flags_.has_width) { pad(""); }
                flags_.zero = zero;
                return;
            }
        } else if (flags_.zero && !flags_.minus && flags_.has_width) {
            precision = static_cast<std::size_t>(flags_.width);
            if (negative || flags_.plus || flags_.space) { precision = precision > 0 ? precision - 1 : 0; }
        }
        std::string digits;
        const std::string_view set = verb == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
        do {
            digits += set[size % base];
            size /= base;
        } while (size != 0);
        while (digits.size() < precision) { digits += '0'; }
        std::reverse(digits.begin(), digits.end());
        if (flags_.sharp) {
            if (base == 2) { digits = "0b" + digits; }
            if (base == 8 && digits[0] != '0') { digits = "0" + digits; }
            if (base == 16) { digits = (verb == 'X' ? "0X" : "0x") + digits; }
        }
        if (verb == 'O') { digits = "0o" + digits; }
        if (negative) {
            digits = '-' + digits;
        } else if (flags_.plus) {
            digits = '+' + digits;
        } else if (flags_.space) {
            digits = ' ' + digits;
        }
        const bool zero = flags_.zero;
        flags_.zero = false;
        pad(digits);
        flags_.zero = zero;
    }

    void format_float(double number, char verb, int default_precision) {
        const int precision = flags_.has_precision ? flags_.precision : default_precision;
        std::string text = format_real(number, verb, precision);
        if (text[0] != '-' && text[0] != '+') { text = '+' + text; }
        if (flags_.space && text[0] == '+' && !flags_.plus) { text[0] = ' '; }
        const bool zero = flags_.zero;
        if (text[1] == 'I' || text[1] == 'N') {  // an infinity keeps its sign, also without '+'
            flags_.zero = false;
            pad(text == "+NaN" && !flags_.plus ? "NaN" : text);
            flags_.zero = zero;
            return;
        }
        if (flags_.sharp && verb != 'b') { sharpen(text, verb, precision); }
        if (flags_.plus || text[0] != '+') {
            if (flags_.zero && !flags_.minus && flags_.has_width &&
                static_cast<std::size_t>(flags_.width) > text.size() &&
                (text[0] == '-' || text[0] == '+' || text[0] == ' ')) {
                out += text[0];
                out.append(static_cast<std::size_t>(flags_.width) - text.size(), '0');
                out += text.substr(1);
            } else {
                pad(text);
            }
        } else {
            pad(text.substr(1));
        }
        flags_.zero = zero;
    }

    /// '#': always a point, and trailing zeros stay.
    static void sharpen(std::string& text, char verb, int precision) {
        int digits = (verb == 'g' || verb == 'G' || verb == 'x') ? (precision == -1 ? 6 : precision) : 0;
        const std::size_t e = text.find_first_of(verb == 'x' || verb == 'X' ? "pP" : "eE");
        std::string tail = e == std::string::npos ? "" : text.substr(e);
        if (e != std::string::npos) { text.resize(e); }
        bool point = false, nonzero = false;
        for (const char c : text.substr(1)) {
            if (c == '.') {
                point = true;
            } else {
                nonzero = nonzero || c != '0';
                if (nonzero) { --digits; }
            }
        }
        if (!point) {
            if (text.size() == 2 && text[1] == '0') { --digits; }
            text += '.';
        }
        for (; digits > 0; --digits) { text += '0'; }
        text += tail;
    }

    void hex_text(std::string_view s, bool upper) {
        const std::string_view set = upper ? "0123456789ABCDEF" : "0123456789abcdef";
        const std::size_t count =
            flags_.has_precision ? std::min(s.size(), static_cast<std::size_t>(flags_.precision)) : s.size();
        std::string text;
        for (std::size_t i = 0; i < count; ++i) {
            const auto byte = static_cast<unsigned char>(s[i]);
            if (flags_.space && i > 0) { text += ' '; }
            if (flags_.sharp && (flags_.space || i == 0)) { text += upper ? "0X" : "0x"; }
            text += set[byte >> 4U];
            text += set[byte & 0xFU];
        }
        const bool zero = flags_.zero;
        pad(text);
        flags_.zero = zero;
    }

    void bytes(const Value& arg, char32_t verb, char v) {
        if (v == 's' || v == 'q' || v == 'x' || v == 'X') { return text(arg.text(), v); }
        if (flags_.sharp_v) {
            out += "[]byte{";
            bool first = true;
            for (const char c : arg.text()) {
                out += first ? "0x" : ", 0x";
                first = false;
                const auto byte = static_cast<unsigned char>(c);
                if (byte > 0xF) { out += "0123456789abcdef"[byte >> 4U]; }
                out += "0123456789abcdef"[byte & 0xFU];
            }
            out += '}';
            return;
        }
        out += '[';
        bool first = true;
        for (const char c : arg.text()) {
            if (!first) { out += ' '; }
            first = false;
            value(Value::integer(static_cast<unsigned char>(c), Type::uint8), verb, 1);
        }
        out += ']';
    }

    void list(const Value& arg, char32_t verb, int depth) {
        if (flags_.sharp_v && arg.is_none()) {
            out += type_name(arg) + "(nil)";
            return;
        }
        out += flags_.sharp_v ? type_name(arg) + '{' : "[";
        bool first = true;
        for (const auto& item : arg.items()) {
            if (!first) { out += flags_.sharp_v ? ", " : " "; }
            first = false;
            element(item, verb, depth);
        }
        out += flags_.sharp_v ? '}' : ']';
    }

    void map(const Value& arg, char32_t verb, int depth) {
        if (flags_.sharp_v && arg.is_none()) {
            out += type_name(arg) + "(nil)";
            return;
        }
        out += flags_.sharp_v ? type_name(arg) + '{' : "map[";
        bool first = true;
        for (const auto& [key, member] : arg.members()) {
            if (!first) { out += flags_.sharp_v ? ", " : " "; }
            first = false;
            element(Value::string(key), verb, depth);
            out += ':';
            element(member, verb, depth);
        }
        out += flags_.sharp_v ? '}' : ']';
    }

    /// A nil in a list or map is "<nil>" whatever the verb.
    void element(const Value& item, char32_t verb, int depth) {
        if (depth > 200) { throw Fault{"a value is nested too deep to print", "recipe-too-large"}; }
        check_size(out.size());
        value(item, verb, depth + 1);
    }

    void record(const Value& arg, char32_t verb, char v, int depth) {
        const Record& r = *arg.as_record();
        require_known(r);
        if (r.has_text && (v == 'v' || v == 's' || v == 'q' || v == 'x' || v == 'X')) { return text(r.text, v); }
        if (r.pointer && depth > 0) {
            if (allow_addresses) {
                out += k_address;
                return;
            }
            throw Fault{"a pointer in a value prints as its address, which is not deterministic", "not-deterministic",
                        "print its fields"};
        }
        out += r.pointer ? "&{" : "{";
        if (r.embedded > 0) { out += '{'; }
        bool first = true;
        std::size_t number = 0;
        for (const auto& field : r.fields) {
            if (number > 0 && number == r.embedded) { out += '}'; }
            ++number;
            if (!first) { out += flags_.sharp_v ? ", " : " "; }
            first = false;
            if (flags_.plus_v || flags_.sharp_v) { out += field.name + ':'; }
            element(field.value, verb, depth);
        }
        out += '}';
    }
};

}  // namespace kmm::recipe::tmpl
