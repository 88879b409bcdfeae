// SPDX-License-Identifier: Apache-2.0
#include "recipe/goyaml/yaml_text.hpp"

#include <algorithm>

#include "recipe/golib/json.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

bool is_yaml_break(char32_t c) { return c == '\r' || c == '\n' || c == 0x85 || c == 0x2028 || c == 0x2029; }
namespace {

bool is_yaml_blank(char32_t c) { return c == ' ' || c == '\t'; }

}  // namespace

bool is_yaml_printable(char32_t c) {
    return c == '\n' || (c >= 0x20 && c <= 0x7e) || (c >= 0xa0 && c <= 0xd7ff) ||
           (c >= 0xe000 && c <= 0xfffd && c != 0xfeff);
}
bool is_yaml_readable(char32_t c) {
    return c < 0x7f || c == 0x85 || (c >= 0xa0 && c <= 0xd7ff) || (c >= 0xe000 && c <= 0xfffd) || c >= 0x10000;
}

TextForms analyze_text(const std::u32string& value, bool is_v3) {
    TextForms a;
    if (value.empty()) {
        a.flow_plain = a.block = false;
        return a;
    }
    const std::u32string_view text = value;
    bool block_indicators = text.starts_with(U"---") || text.starts_with(U"..."), flow_indicators = block_indicators;
    bool special = false, leading = false, trailing_space = false, trailing_break = false, break_space = false,
         space_break = false;
    bool after_blank = true, after_space = false, after_break = false, tabs = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char32_t c = text[i];
        const bool before_blank = i + 1 >= text.size() || is_yaml_blank(text[i + 1]);
        const std::u32string_view starters = U"#,[]{}&*!|>'\"%@`", inner = U",?[]{}";
        if (i == 0) {
            if (starters.find(c) != std::u32string_view::npos || (c == '-' && before_blank)) {
                flow_indicators = block_indicators = true;
            }
            if (c == '?' || c == ':') {
                flow_indicators = true;
                block_indicators = block_indicators || before_blank;
            }
        } else {
            if (inner.find(c) != std::u32string_view::npos) { flow_indicators = true; }
            if (c == ':') {
                flow_indicators = true;
                block_indicators = block_indicators || before_blank;
            }
            if (c == '#' && after_blank) { flow_indicators = block_indicators = true; }
        }
        tabs = tabs || (is_v3 && c == '\t');
        special = special || (!is_yaml_printable(c) && !(is_v3 && c == '\t'));
        const bool last = i + 1 == text.size();
        if (c == ' ') {
            leading = leading || i == 0;
            trailing_space = trailing_space || last;
            break_space = break_space || after_break;
            after_space = true;
            after_break = false;
        } else if (is_yaml_break(c)) {
            a.multiline = true;
            leading = leading || i == 0;
            trailing_break = trailing_break || last;
            space_break = space_break || after_space;
            after_space = false;
            after_break = true;
        } else {
            after_space = after_break = false;
        }
        after_blank = is_yaml_blank(c) || is_yaml_break(c) || c == 0;
    }
    if (leading || trailing_space || trailing_break || break_space || space_break || tabs || special || a.multiline) {
        a.flow_plain = a.block_plain = false;
    }
    if (trailing_space || space_break || special) { a.block = false; }
    if (break_space || space_break || tabs || special) { a.single_quoted = false; }
    if (flow_indicators) { a.flow_plain = false; }
    if (block_indicators) { a.block_plain = false; }
    return a;
}

std::u32string fold_next_lines(const std::u32string& text) {
    std::u32string out;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i, breaks = 0;
        for (; end < text.size() && (text[end] == ' ' || text[end] == k_next_line); ++end) {
            if (text[end] == k_next_line) { ++breaks; }
        }
        if (breaks == 0) {
            end = std::max(end, i + 1);
            out.append(text, i, end - i);
        } else {
            out += breaks == 1 ? std::u32string(1, U' ') : std::u32string(breaks - 1, U'\n');
            const std::u32string_view next = std::u32string_view(text).substr(end);
            if (text[end - 1] == k_next_line && (next.starts_with(U"---") || next.starts_with(U"...")) &&
                next.size() > 3 && (next[3] == ' ' || next[3] == k_next_line)) {
                throw Fault{"found unexpected document indicator"};
            }
        }
        i = end;
    }
    return out;
}

void check_json_key(std::string_view key) {
    constexpr std::size_t k_longest = 1024;  // characters with the quotes
    const bool fits = key.size() < 100 || runes(json_quoted(key, true)).size() <= k_longest;
    if (!fits || key.find("\xC2\x85") != std::string_view::npos) { throw Fault{"did not find expected ',' or '}'"}; }
}

namespace {

bool is_ascii(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

bool is_yaml_word(std::string_view text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    constexpr std::size_t k_longest_other = 5;  // "false"
    if (text.size() <= k_longest_other || !(letter(text[0]) || text[0] == '/')) { return false; }
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
    });
}

namespace {

/// Natural order of keys: numbers by their value. `Text` is one whose elements are characters.
template <typename Text>
bool key_less(const Text& a, const Text& b) {
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
        if (a[i] == b[i]) { continue; }
        const bool al = is_letter(static_cast<char32_t>(a[i])), bl = is_letter(static_cast<char32_t>(b[i]));
        if (al && bl) { return a[i] < b[i]; }
        if (al || bl) { return bl; }
        std::int64_t an = 0, bn = 0;
        if (a[i] == '0' || b[i] == '0') {
            for (std::size_t j = i; j-- > 0 && is_digit(static_cast<char32_t>(a[j]));) {
                if (a[j] != '0') {
                    an = bn = 1;
                    break;
                }
            }
        }
        std::size_t ai = i, bi = i;
        const auto digit = [](std::int64_t n, auto c) {
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(n) * 10U + static_cast<std::uint64_t>(c - '0'));
        };
        for (; ai < a.size() && is_digit(static_cast<char32_t>(a[ai])); ++ai) { an = digit(an, a[ai]); }
        for (; bi < b.size() && is_digit(static_cast<char32_t>(b[bi])); ++bi) { bn = digit(bn, b[bi]); }
        if (an != bn) { return an < bn; }
        if (ai != bi) { return ai < bi; }
        return a[i] < b[i];
    }
    return a.size() < b.size();
}

}  // namespace

bool is_key_before(std::string_view a, std::string_view b) {
    return is_ascii(a) && is_ascii(b) ? key_less(a, b) : key_less(runes(a), runes(b));
}

}  // namespace kmm::recipe::tmpl
