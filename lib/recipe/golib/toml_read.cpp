// SPDX-License-Identifier: Apache-2.0
// TOML 1.1 as BurntSushi's decoder reads it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "recipe/golib/toml.hpp"
#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_toml_read_depth_max = 300;

struct TomlNode {
    enum class Kind { leaf, table, tables };
    Kind kind = Kind::table;
    Value leaf;
    std::map<std::string, TomlNode> members;
    std::vector<TomlNode> items;  ///< of [[x]]
    bool is_implied = false;  ///< a table that a longer name has made: [x.y] and x.y = 1 make x

    [[nodiscard]] Value value() const {
        if (kind == Kind::leaf) { return leaf; }
        if (kind == Kind::tables) {
            List list;
            for (const auto& item : items) { list.push_back(item.value()); }
            return Value::list(std::move(list));
        }
        Map map;
        for (const auto& [key, member] : members) { map[key] = member.value(); }
        return Value::map(std::move(map));
    }
};

class TomlReader {
public:
    TomlReader(std::string_view text, Budget* budget) : text_(text), budget_(budget) {
        if (text_.starts_with("\xEF\xBB\xBF")) { text_.remove_prefix(3); }
    }

    Value read() {
        TomlNode* table = &root_;
        for (skip_lines(); at_ < text_.size(); skip_lines()) {
            if (peek() == '[') {
                table = header();
            } else {
                key_value(*table, 0);
            }
            skip_blanks();
            skip_comment();
            if (at_ < text_.size() && !take_break()) { throw bad("expected a newline"); }
        }
        return root_.value();
    }

private:
    std::string_view text_;
    std::size_t at_ = 0;
    Budget* budget_;
    TomlNode root_;

    /// Before a node, which takes more room than its text, twice for a moment.
    void ask(std::size_t key_size) {
        if (budget_ != nullptr) { budget_->take(sizeof(TomlNode) + member_bytes(key_size) + k_held_bytes); }
    }

    Fault bad(std::string_view message) const {
        const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
        return Fault{fmt::format("toml: line {}: {}", line, message)};
    }

    [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(std::string_view what) {
        if (!text_.substr(at_).starts_with(what)) { return false; }
        at_ += what.size();
        return true;
    }
    bool take_break() { return take("\n") || take("\r\n"); }
    void skip_blanks() {
        while (peek() == ' ' || peek() == '\t') { ++at_; }
    }
    void skip_comment() {
        if (peek() != '#') { return; }
        for (; at_ < text_.size() && peek() != '\n' && !text_.substr(at_).starts_with("\r\n"); ++at_) {
            if (is_control(peek())) { throw bad("control characters are not allowed in a comment"); }
        }
    }
    /// Blanks, comments and ends of lines.
    void skip_lines() {
        for (std::size_t before = at_ + 1; before != at_;) {
            before = at_;
            skip_blanks();
            skip_comment();
            (void)take_break();
        }
    }
    static bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }
    static bool is_bare(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    }

    std::string simple_key() {
        if (peek() == '"') { return basic(); }
        if (peek() == '\'') { return literal(); }
        std::string key;
        while (is_bare(peek())) { key += text_[at_++]; }
        if (key.empty()) { throw bad("expected a key"); }
        return key;
    }

    std::vector<std::string> keys() {
        std::vector<std::string> made;
        do {
            skip_blanks();
            made.push_back(simple_key());
            skip_blanks();
        } while (take("."));
        if (made.size() > k_toml_read_depth_max) {
            throw Fault{"a key is nested too deep", "recipe-too-large", ""};
        }
        return made;
    }

    Fault twice(const std::string& key) const { return bad(fmt::format("Key '{}' has already been defined.", key)); }

    TomlNode* header() {
        const bool is_list = take("[[");
        if (!is_list) { ++at_; }
        const auto path = keys();
        if (!take(is_list ? "]]" : "]")) { throw bad("expected the end of a table's name"); }
        TomlNode* table = &root_;
        for (std::size_t i = 0; i < path.size(); ++i) {
            const bool is_last = i + 1 == path.size();
            ask(path[i].size());
            const auto [place, is_new] = table->members.try_emplace(path[i]);
            TomlNode& one = place->second;
            if (is_last && is_list) {
                if (is_new) { one.kind = TomlNode::Kind::tables; }
                if (one.kind != TomlNode::Kind::tables) { throw twice(path[i]); }
                return &one.items.emplace_back();
            }
            if (one.kind == TomlNode::Kind::tables && !is_last) {
                table = &one.items.back();
                continue;
            }
            if (one.kind != TomlNode::Kind::table || (is_last && !is_new && !one.is_implied)) { throw twice(path[i]); }
            one.is_implied = !is_last && (is_new || one.is_implied);
            table = &one;
        }
        return table;
    }

    void key_value(TomlNode& within, int depth) {
        const auto path = keys();
        if (!take("=")) { throw bad("expected '=' behind a key"); }
        skip_blanks();
        TomlNode* table = &within;
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            ask(path[i].size());
            const auto [place, is_new] = table->members.try_emplace(path[i]);
            TomlNode& one = place->second;
            one.is_implied = one.is_implied || is_new;
            if (one.kind != TomlNode::Kind::table) { throw twice(path[i]); }
            table = &one;
        }
        ask(path.back().size());
        const auto [place, is_new] = table->members.try_emplace(path.back());
        TomlNode& one = place->second;
        TomlNode made = value(depth + 1);
        if (is_new) {
            one = std::move(made);
        } else if (one.is_implied && made.kind == TomlNode::Kind::leaf) {
            // The decoder drops what would replace a table that no line has declared.
            one.is_implied = false;
        } else {
            throw twice(path.back());
        }
    }

    TomlNode value(int depth) {
        if (depth > k_toml_read_depth_max) {
            throw Fault{"a value is nested too deep", "recipe-too-large", ""};
        }
        if (peek() == '{') { return inline_table(depth); }
        TomlNode made;
        made.kind = TomlNode::Kind::leaf;
        if (peek() == '[') {
            made.leaf = array(depth);
        } else if (text_.substr(at_).starts_with("\"\"\"")) {
            made.leaf = Value::string(basic_lines());
        } else if (text_.substr(at_).starts_with("'''")) {
            made.leaf = Value::string(literal_lines());
        } else if (peek() == '"') {
            made.leaf = Value::string(basic());
        } else if (peek() == '\'') {
            made.leaf = Value::string(literal());
        } else {
            made.leaf = word();
        }
        return made;
    }

    Value array(int depth) {
        ++at_;
        List items;
        for (;;) {
            skip_lines();
            if (take("]")) { return Value::list(std::move(items)); }
            ask(0);
            items.push_back(value(depth + 1).value());
            skip_lines();
            if (!take(",") && peek() != ']') { throw bad("expected ',' or ']' behind an item"); }
        }
    }

    TomlNode inline_table(int depth) {
        ++at_;
        TomlNode made;
        for (;;) {
            skip_lines();
            if (take("}")) { break; }
            key_value(made, depth);
            skip_lines();
            if (!take(",") && peek() != '}') {
                throw bad("expected ',' or '}' behind a member");
            }
        }
        return made;
    }

    void character(std::string& out) {
        const char c = peek();
        if (at_ >= text_.size()) { throw bad("unexpected EOF; expected the end of a string"); }
        if (is_control(c)) { throw bad("control characters are not allowed inside strings"); }
        out += c;
        ++at_;
    }

    void escape(std::string& out) {
        ++at_;
        const char c = peek();
        ++at_;
        constexpr std::string_view k_names = "btnfre\"\\", k_codes = "\b\t\n\f\r\x1b\"\\";
        if (const std::size_t i = c == '\0' ? std::string_view::npos : k_names.find(c); i != std::string_view::npos) {
            out += k_codes[i];
            return;
        }
        const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
        const std::string digits(text_.substr(std::min(at_, text_.size()), size));
        if (size == 0 || digits.size() < size ||
            digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
            throw bad("invalid escape in a string");
        }
        const auto rune = static_cast<char32_t>(std::stoul(digits, nullptr, 16));
        if (rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff)) {
            throw bad("escaped character is not valid UTF-8");
        }
        append_rune(out, rune);
        at_ += size;
    }

    std::string basic() {
        std::string out;
        for (++at_; !take("\"");) { peek() == '\\' ? escape(out) : character(out); }
        return out;
    }

    std::string literal() {
        std::string out;
        for (++at_; !take("'");) { character(out); }
        return out;
    }

    /// The end of a text of several lines; quotes in front of the last three belong to it.
    bool take_end(std::string& out, char quote) {
        const std::string three(3, quote);
        if (!take(three)) { return false; }
        for (int i = 0; i < 2 && peek() == quote; ++i) { out += text_[at_++]; }
        return true;
    }

    void line_break_or(std::string& out) {
        if (take_break()) {
            out += '\n';
        } else {
            character(out);
        }
    }

    std::string basic_lines() {
        std::string out;
        at_ += 3;
        (void)take_break();
        while (!take_end(out, '"')) {
            if (peek() != '\\') {
                line_break_or(out);
                continue;
            }
            const std::size_t next = text_.find_first_not_of(" \t", at_ + 1);
            const bool joins =
                next != std::string_view::npos && (text_[next] == '\n' || text_.substr(next).starts_with("\r\n"));
            if (joins) {
                at_ = std::min(text_.find_first_not_of(" \t\r\n", next), text_.size());
            } else {
                escape(out);
            }
        }
        return out;
    }

    std::string literal_lines() {
        std::string out;
        at_ += 3;
        (void)take_break();
        while (!take_end(out, '\'')) { line_break_or(out); }
        return out;
    }

    /// Booleans, numbers and times.
    Value word() {
        const std::size_t begin = at_;
        while (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') { ++at_; }
        const bool is_date = at_ == begin + 10 && text_[begin + 4] == '-' && peek() == ' ';
        if (is_date && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9') {
            for (++at_; is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':';) { ++at_; }
        }
        const std::string text(text_.substr(begin, at_ - begin));
        if (text == "true" || text == "false") { return Value::boolean(text == "true"); }
        if ((text.size() > 4 && text[4] == '-' && text.find_first_not_of("0123456789") == 4) ||
            (text.size() > 2 && text[2] == ':')) {
            return time(text);
        }
        return number(text);
    }

    Value time(std::string text) const {
        std::replace(text.begin(), text.end(), ' ', 'T');
        std::transform(text.begin(), text.end(), text.begin(),
                       [](char c) { return c == 't' || c == 'z' ? static_cast<char>(c - 32) : c; });
        if (text.size() > 16 && text[16] != ':') { text.insert(16, ":00"); }
        const auto moment = parse_time("2006-01-02T15:04:05Z07:00", text);
        if (moment) { return Value::time(*moment); }
        for (const std::string_view layout :
             {"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "15:04:05", "15:04"}) {
            if (!parse_time(layout, text)) { continue; }
            throw Fault{"a time of TOML without a zone is in that of the machine, which is not supported",
                        "unsupported-zone", "write Z behind the time, or put it in quotes"};
        }
        throw bad("invalid time");
    }

    Value number(const std::string& text) const {
        const auto wrong = [&] {
            return bad(text.empty() ? "expected value" : fmt::format("expected value but found '{}' instead", text));
        };
        std::string digits;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '_') {
                digits += text[i];
                continue;
            }
            const auto is_digit_at = [&](std::size_t at) {
                return at < text.size() && is_bare(text[at]) && text[at] != '_' && text[at] != '-';
            };
            if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) { throw wrong(); }
        }
        const bool is_signed = digits.starts_with('+') || digits.starts_with('-');
        const std::string_view rest = std::string_view(digits).substr(is_signed ? 1 : 0);
        if (rest == "inf" || rest == "nan") {
            const double size = rest == "inf" ? std::numeric_limits<double>::infinity() : std::nan("");
            return Value::real(digits[0] == '-' ? -size : size);
        }
        for (const auto& [prefix, base] : {std::pair("0x", 16), std::pair("0o", 8), std::pair("0b", 2)}) {
            if (!rest.starts_with(prefix)) { continue; }
            const auto value = is_signed ? std::nullopt : parse_int(rest.substr(2), base);
            if (!value || rest[2] == '-' || rest[2] == '+') { throw wrong(); }
            return Value::integer(*value, Type::int64);
        }
        const bool is_whole = !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
        if (rest.size() > 1 && rest[0] == '0' && rest[1] >= '0' && rest[1] <= '9') { throw wrong(); }
        if (is_whole) {
            const auto value = parse_int(digits, 10);
            if (!value) {
                throw bad(fmt::format("{} is out of range for int64", digits));
            }
            return Value::integer(*value, Type::int64);
        }
        const std::size_t point = rest.find('.');
        const auto is_digit_at = [&](std::size_t at) { return at < rest.size() && rest[at] >= '0' && rest[at] <= '9'; };
        const bool form = is_digit_at(0) && rest.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
                          (point == std::string_view::npos || is_digit_at(point + 1));
        const auto value = form ? parse_real(digits) : std::nullopt;
        if (!value) { throw wrong(); }
        return Value::real(*value);
    }
};

}  // namespace

Value read_toml(std::string_view text, Budget* budget) { return TomlReader(text, budget).read(); }

}  // namespace kmm::recipe::tmpl
