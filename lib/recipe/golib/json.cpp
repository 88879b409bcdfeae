// SPDX-License-Identifier: Apache-2.0
#include "recipe/golib/json.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_json_depth_max = 500;

class JsonWriter {
public:
    explicit JsonWriter(const JsonStyle& style) : style_(style) {}
    std::string out;

    void write(const Value& value) {
        if (++depth_ > k_json_depth_max) {
            throw Fault{"a value is nested too deep, or contains itself", "recipe-too-large", ""};
        }
        check_size(out.size());
        one(value);
        --depth_;
    }

private:
    const JsonStyle& style_;
    int depth_ = 0;

    void line(int extra) {
        if (!style_.pretty) { return; }
        out += '\n';
        out.append(static_cast<std::size_t>(depth_ - 1 + extra) * 2, ' ');
    }

    void one(const Value& value) {
        switch (value.type()) {
            case Type::invalid:
            case Type::nil: out += "null"; return;
            case Type::boolean: out += value.as_bool() ? "true" : "false"; return;
            case Type::integer:
            case Type::int64: out += std::to_string(value.as_int()); return;
            case Type::uint64:
            case Type::uint8: out += std::to_string(value.as_uint()); return;
            case Type::float64: out += json_number(value.as_real()); return;
            case Type::string: out += json_quoted(value.text(), style_.html); return;
            case Type::bytes: out += value.is_none() ? "null" : '"' + base::to_base64(value.text()) + '"'; return;
            case Type::time: out += '"' + rfc3339(value.as_time()) + '"'; return;
            case Type::record: record(*value.as_record()); return;
            default: break;
        }
        if (value.is_none()) {
            out += "null";
        } else if (value.is_map()) {
            open('{', '}', value.members().empty(), [&] {
                bool first = true;
                for (const auto& [key, member] : value.members()) { pair(first, key, member); }
            });
        } else {
            open('[', ']', value.items().empty(), [&] {
                bool first = true;
                for (const auto& item : value.items()) {
                    if (!first) { out += ','; }
                    first = false;
                    line(1);
                    write(item);
                }
            });
        }
    }

    template <typename Body>
    void open(char left, char right, bool is_empty, Body&& body) {
        out += left;
        body();
        if (!is_empty) { line(0); }
        out += right;
    }

    void pair(bool& first, std::string_view key, const Value& member) {
        if (!first) { out += ','; }
        first = false;
        line(1);
        out += json_quoted(key, style_.html);
        out += style_.pretty ? ": " : ":";
        write(member);
    }

    void record(const Record& record) {
        require_known(record);
        if (record.fields.empty() && record.has_text) {
            out += json_quoted(record.text, style_.html);
            return;
        }
        bool none = true;
        for (const auto& field : record.fields) {
            none = none && (field.json.empty() || (field.omit_empty && empty(field.value)));
        }
        open('{', '}', none, [&] {
            bool first = true;
            for (const auto& field : record.fields) {
                if (!field.json.empty() && !(field.omit_empty && empty(field.value))) {
                    pair(first, field.json, field.value);
                }
            }
        });
    }
};

}  // namespace

std::string json_number(double number) {
    if (!std::isfinite(number)) { throw Fault{"json: unsupported value: " + format_real(number, 'g', -1)}; }
    const double size = std::fabs(number);
    if (size == 0 || (size >= 1e-6 && size < 1e21)) { return format_real(number, 'f', -1); }
    std::string text = format_real(number, 'e', -1);
    // e-09 is written e-9.
    const std::size_t n = text.size();
    if (n >= 4 && text[n - 4] == 'e' && (text[n - 3] == '-' || text[n - 3] == '+') && text[n - 2] == '0' &&
        text[n - 3] == '-') {
        text.erase(n - 2, 1);
    }
    return text;
}

std::string json_quoted(std::string_view text, bool html) {
    std::string out = "\"";
    const auto hex = [&](char32_t rune) { out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(rune)); };
    for (std::size_t at = 0; at < text.size();) {
        const Decoded d = decode(text, at);
        if (!d.valid) {
            out += "\\ufffd";
        } else if (d.rune == '"' || d.rune == '\\') {
            out += '\\';
            out += static_cast<char>(d.rune);
        } else if (d.rune < 0x20 || (html && (d.rune == '<' || d.rune == '>' || d.rune == '&')) || d.rune == 0x2028 ||
                   d.rune == 0x2029) {
            switch (d.rune) {
                case '\n': out += "\\n"; break;
                case '\r': out += "\\r"; break;
                case '\t': out += "\\t"; break;
                case '\b': out += "\\b"; break;
                case '\f': out += "\\f"; break;
                default: hex(d.rune);
            }
        } else {
            out += text.substr(at, d.width);
        }
        at += d.width;
    }
    return out + '"';
}

std::string write_json(const Value& value, const JsonStyle& style) {
    JsonWriter writer(style);
    writer.write(value);
    return std::move(writer.out);
}

std::string write_inert_json(const Value& value, const JsonStyle& style) {
    std::string text = write_json(value, style);
    // Outside of texts there is no '#', and no line begins with "::".
    for (std::size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
        std::size_t word = at;
        while (word > 0 && ((text[word - 1] >= 'a' && text[word - 1] <= 'z') ||
                            (text[word - 1] >= 'A' && text[word - 1] <= 'Z'))) {
            --word;
        }
        if (word >= 2 && text[word - 1] == '#' && text[word - 2] == '#') { text.replace(at, 1, "\\u005b"); }
    }
    return text;
}

namespace {

class JsonReader {
public:
    JsonReader(std::string_view text, std::string& fault, Budget* budget = nullptr)
        : text_(text), fault_(fault), budget_(budget) {}

    /// Where the reading ended.
    [[nodiscard]] std::size_t at() const { return at_; }

    Value run() {
        skip();
        Value value = any(0);
        skip();
        if (fault_.empty() && at_ < text_.size()) { bad("after top-level value"); }
        if (!fault_.empty()) { return Value::nil(); }
        fault_ = range_fault_;
        return value;
    }

    /// The first value, whatever stands behind it.
    Value first() {
        skip();
        Value value = any(0);
        if (!fault_.empty()) { return Value::nil(); }
        fault_ = range_fault_;
        return value;
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
    std::string& fault_;
    Budget* budget_;
    std::string range_fault_;  ///< the first number that is too large; faults of the syntax come before it

    void skip() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) { ++at_; }
    }

    Value bad(std::string_view context) {
        if (!fault_.empty()) { return Value::nil(); }
        if (at_ >= text_.size()) {
            // Go reads a blank behind the text: inside of a number, a word or an escape that is what is wrong.
            const bool is_inside = context.starts_with("in literal") ||
                                   context.find("numeric") != std::string_view::npos ||
                                   context.find("escape") != std::string_view::npos;
            fault_ = is_inside ? fmt::format("invalid character ' ' {}", context) : "unexpected end of JSON input";
        } else {
            const char c = text_[at_];
            const std::string shown = c == '\''  ? R"('\'')"
                                      : c == '"' ? R"('"')"
                                                 : quote_rune(static_cast<unsigned char>(c));
            fault_ = fmt::format("invalid character {} {}", shown, context);
        }
        return Value::nil();
    }

    /// Before what takes more room than its text.
    void ask(std::uint64_t bytes) {
        if (budget_ != nullptr) { budget_->take(bytes); }
    }

    Value any(int depth) {
        if (depth > k_json_depth_max) {
            fault_ = fmt::format("values are nested more than {} deep", k_json_depth_max);
            return Value::nil();
        }
        if (at_ >= text_.size()) { return bad(""); }
        ask(k_held_bytes);
        switch (text_[at_]) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return Value::string(string());
            case 't': return word("true", Value::boolean(true));
            case 'f': return word("false", Value::boolean(false));
            case 'n': return word("null", Value::nil());
            default: return number(depth);
        }
    }

    Value word(std::string_view wanted, Value value) {
        for (std::size_t i = 0; i < wanted.size(); ++i, ++at_) {
            if (at_ >= text_.size() || text_[at_] != wanted[i]) {
                return bad(fmt::format("in literal {} (expecting {})", wanted,
                                       quote_rune(static_cast<unsigned char>(wanted[i]))));
            }
        }
        return value;
    }

    Value object(int depth) {
        Map members;
        ++at_;
        skip();
        if (at_ < text_.size() && text_[at_] == '}') {
            ++at_;
            return Value::map(std::move(members));
        }
        for (;;) {
            skip();
            if (at_ >= text_.size() || text_[at_] != '"') { return bad("looking for beginning of object key string"); }
            std::string key = string();
            skip();
            if (!fault_.empty() || at_ >= text_.size() || text_[at_] != ':') { return bad("after object key"); }
            ++at_;
            skip();
            ask(member_bytes(key.size()));
            members[std::move(key)] = any(depth + 1);
            skip();
            if (!fault_.empty()) { return Value::nil(); }
            if (at_ < text_.size() && text_[at_] == ',') {
                ++at_;
                continue;
            }
            if (at_ >= text_.size() || text_[at_] != '}') { return bad("after object key:value pair"); }
            ++at_;
            return Value::map(std::move(members));
        }
    }

    Value array(int depth) {
        List items;
        ++at_;
        skip();
        if (at_ < text_.size() && text_[at_] == ']') {
            ++at_;
            return Value::list(std::move(items));
        }
        for (;;) {
            skip();
            ask(sizeof(Value));
            items.push_back(any(depth + 1));
            skip();
            if (!fault_.empty()) { return Value::nil(); }
            if (at_ < text_.size() && text_[at_] == ',') {
                ++at_;
                continue;
            }
            if (at_ >= text_.size() || text_[at_] != ']') { return bad("after array element"); }
            ++at_;
            return Value::list(std::move(items));
        }
    }

    bool digits() {
        const std::size_t start = at_;
        while (at_ < text_.size() && is_digit(static_cast<unsigned char>(text_[at_]))) { ++at_; }
        return at_ > start;
    }

    Value number(int depth) {
        const std::size_t start = at_;
        if (text_[at_] == '-') {
            ++at_;
            if (at_ >= text_.size() || !is_digit(static_cast<unsigned char>(text_[at_]))) {
                return bad("in numeric literal");
            }
        }
        if (at_ < text_.size() && text_[at_] == '0') {
            ++at_;
        } else if (!digits()) {
            return bad("looking for beginning of value");
        }
        if (at_ < text_.size() && text_[at_] == '.') {
            ++at_;
            if (!digits()) { return bad("after decimal point in numeric literal"); }
        }
        if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
            ++at_;
            if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) { ++at_; }
            if (!digits()) { return bad("in exponent of numeric literal"); }
        }
        const std::string_view written = text_.substr(start, at_ - start);
        const auto value = parse_real(written);
        if (!value) {
            if (range_fault_.empty()) {
                range_fault_ = fmt::format("json: cannot unmarshal number {} into Go value of type float64", written);
            }
            return depth == 0 ? Value::real(0) : Value::nil();
        }
        return Value::real(*value);
    }

    int hex4() {
        int code = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            const char c = at_ < text_.size() ? text_[at_] : '\0';
            const int digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
            if (digit < 0) {
                bad("in \\u hexadecimal character escape");
                return -1;
            }
            code = code * 16 + digit;
        }
        return code;
    }

    void escape(std::string& out) {
        ++at_;
        const char c = at_ < text_.size() ? text_[at_] : '\0';
        constexpr std::string_view k_names = "\"\\/bfnrt", k_codes = "\"\\/\b\f\n\r\t";
        if (const std::size_t i = k_names.find(c); i != std::string_view::npos && c != '\0') {
            out += k_codes[i];
            ++at_;
            return;
        }
        if (c != 'u') {
            bad("in string escape code");
            return;
        }
        ++at_;
        const int first = hex4();
        if (first < 0) { return; }
        char32_t rune = static_cast<char32_t>(first);
        if (rune >= 0xD800 && rune < 0xDC00 && text_.substr(std::min(at_, text_.size())).starts_with("\\u")) {
            const std::size_t mark = at_;
            at_ += 2;
            const int second = hex4();
            if (second >= 0xDC00 && second < 0xE000) {
                rune = 0x10000 + ((rune - 0xD800) << 10U) + (static_cast<char32_t>(second) - 0xDC00);
            } else {
                at_ = mark;
            }
        }
        append_rune(out, rune);
    }

    std::string string() {
        std::string out;
        ++at_;
        while (at_ < text_.size() && fault_.empty()) {
            const char c = text_[at_];
            if (c == '"') {
                ++at_;
                return out;
            }
            if (c == '\\') {
                escape(out);
            } else if (static_cast<unsigned char>(c) < 0x20) {
                bad("in string literal");
            } else {
                const Decoded d = decode(text_, at_);
                append_rune(out, d.rune);
                at_ += d.width;
            }
        }
        bad("in string literal");
        return out;
    }
};

}  // namespace

Value read_json_text(std::string_view text, std::string& fault, Budget* budget) {
    return JsonReader(text, fault, budget).run();
}

Value read_json_text(std::string_view text, std::string& fault, std::size_t& at) {
    JsonReader reader(text, fault);
    Value value = reader.run();
    at = reader.at();
    return value;
}

Value read_json_prefix(std::string_view text, std::string& fault, std::size_t& at) {
    JsonReader reader(text, fault);
    Value value = reader.first();
    at = reader.at();
    return value;
}

}  // namespace kmm::recipe::tmpl
