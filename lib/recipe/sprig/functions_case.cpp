// SPDX-License-Identifier: Apache-2.0
// Sprig's functions that change the case of texts: strings, goutils and xstrings.
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/sprig/sprig.hpp"

namespace kmm::recipe::tmpl {

namespace {

bool is_separator(char32_t rune) {
    if (rune <= 0x7f) { return !is_digit(rune) && !is_letter(rune) && rune != '_'; }
    return !is_letter(rune) && is_space(rune);
}

std::string titled(std::string_view text) {
    char32_t before = ' ';
    std::u32string out = runes(text);
    for (auto& rune : out) {
        const char32_t now = rune;
        if (is_separator(before)) { rune = to_title(rune); }
        before = now;
    }
    return utf8(out);
}

std::string untitled(std::string_view text) {
    bool next = true;
    std::u32string out = runes(text);
    for (auto& rune : out) {
        if (is_space(rune)) {
            next = true;
        } else if (next) {
            rune = to_lower(rune);
            next = false;
        }
    }
    return utf8(out);
}

std::string swapped(std::string_view text) {
    bool blank = true;
    std::u32string out = runes(text);
    for (auto& rune : out) {
        if (is_upper(rune)) {
            rune = to_lower(rune);
            blank = false;
        } else if (is_lower(rune)) {
            rune = blank ? to_title(rune) : to_upper(rune);
            blank = false;
        } else {
            blank = is_space(rune);
        }
    }
    return utf8(out);
}

template <char32_t (*Change)(char32_t) noexcept>
std::string each_rune(std::string_view text) {
    std::u32string out = runes(text);
    for (auto& rune : out) { rune = Change(rune); }
    return utf8(out);
}

/// As goutils has it: each byte is taken for a character, unless none is a blank.
std::string without_blanks(std::string_view text) {
    std::u32string out;
    for (const char c : text) {
        const char32_t rune = static_cast<unsigned char>(c);
        if (!is_space(rune)) { out += rune; }
    }
    return out.size() == text.size() ? std::string(text) : utf8(out);
}

std::string initials_of(std::string_view text) {
    std::string out;
    bool gap = true;
    for (const char c : text) {
        const char32_t rune = static_cast<unsigned char>(c);
        if (is_space(rune)) {
            gap = true;
        } else if (gap) {
            append_rune(out, rune);
            gap = false;
        }
    }
    return out;
}

bool is_connector(char32_t rune) { return rune == '-' || rune == '_' || is_space(rune); }

/// unicode.IsPunct for ASCII; other punctuation counts as other text.
bool is_punct(char32_t rune) {
    return rune < 0x80 &&
           std::string_view("!\"#%&'()*,-./:;?@[\\]_{}").find(static_cast<char>(rune)) != std::string_view::npos;
}

bool is_alphabet(char32_t rune) { return is_letter(rune) && (is_upper(rune) || is_lower(rune)); }

std::u32string pascal(std::u32string_view text) {
    std::u32string out;
    if (text.empty()) { return out; }
    bool upper_run = false;
    char32_t r0 = 0;
    std::size_t at = 0;
    bool found = false;
    while (at < text.size()) {
        r0 = text[at++];
        if (!is_connector(r0)) {
            upper_run = is_upper(r0);
            r0 = to_upper(r0);
            found = true;
            break;
        }
        out += r0;
    }
    if (at == text.size()) {
        out += r0;
        (void)found;
        return out;
    }
    while (at < text.size()) {
        const char32_t r1 = r0;
        r0 = text[at++];
        if (is_connector(r0) && is_connector(r1)) {
            out += r1;
            continue;
        }
        if (is_connector(r1)) {
            upper_run = is_upper(r0);
            r0 = to_upper(r0);
        } else {
            if (upper_run) {
                if (is_upper(r0)) {
                    r0 = to_lower(r0);
                } else {
                    upper_run = false;
                }
            }
            out += r1;
        }
    }
    out += r0;
    return out;
}

enum class Word { invalid, number, upper, alphabet, connector, punct, other };

struct NextWord {
    Word kind = Word::invalid;
    std::u32string_view word, rest;
};

template <typename In>
std::size_t run_of(std::u32string_view text, std::size_t from, In&& in) {
    while (from < text.size() && in(text[from])) { ++from; }
    return from;
}

NextWord next_word(std::u32string_view text) {
    if (text.empty()) { return {}; }
    const char32_t r = text[0];
    Word kind = Word::other;
    std::size_t end = 1;
    const auto small = [](char32_t c) { return is_alphabet(c) && !is_upper(c); };
    if (is_connector(r)) {
        kind = Word::connector;
        end = run_of(text, 1, is_connector);
    } else if (is_punct(r)) {
        kind = Word::punct;
        end = run_of(text, 1, is_punct);
    } else if (is_upper(r)) {
        kind = Word::upper;
        if (text.size() > 1 && is_upper(text[1])) {
            end = run_of(text, 1, is_upper);
            // HTTPStatus: the S belongs to the next word.
            if (end < text.size() && is_alphabet(text[end])) { --end; }
        } else {
            end = run_of(text, 1, small);
        }
    } else if (is_alphabet(r)) {
        kind = Word::alphabet;
        end = run_of(text, 1, small);
    } else if (is_digit(r)) {
        kind = Word::number;
        end = run_of(text, 1, is_digit);
    } else {
        end = run_of(text, 1,
                     [](char32_t c) { return !is_connector(c) && !is_alphabet(c) && !is_digit(c) && !is_punct(c); });
    }
    return {kind, text.substr(0, end), text.substr(end)};
}

void put_lower(std::u32string& out, Word kind, std::u32string_view word, char32_t connector) {
    if (kind != Word::upper && kind != Word::connector) {
        out += word;
        return;
    }
    for (const char32_t rune : word) { out += is_connector(rune) ? connector : to_lower(rune); }
}

/// xstrings.ToSnakeCase and ToKebabCase.
std::string lowered(std::string_view given, char32_t connector) {
    const std::u32string all = runes(given);
    std::u32string out;
    NextWord w = next_word(all);
    const auto joins = [](Word kind) { return kind == Word::alphabet || kind == Word::number; };
    while (!w.rest.empty()) {
        if (w.kind != Word::connector) { put_lower(out, w.kind, w.word, connector); }
        const Word before = w.kind;
        const std::u32string_view last = w.word;
        w = next_word(w.rest);
        switch (before) {
            case Word::number:
                while (joins(w.kind)) {
                    put_lower(out, w.kind, w.word, connector);
                    w = next_word(w.rest);
                }
                if (w.kind != Word::invalid && w.kind != Word::punct && w.kind != Word::connector) { out += connector; }
                break;
            case Word::connector: put_lower(out, before, last, connector); break;
            case Word::punct: break;
            default:
                if (w.kind != Word::number) {
                    if (w.kind != Word::connector && w.kind != Word::punct) { out += connector; }
                    break;
                }
                if (w.rest.empty()) { break; }
                const std::u32string_view number = w.word;
                w = next_word(w.rest);
                if (w.kind != Word::alphabet) {
                    put_lower(out, Word::number, number, connector);
                    if (w.kind != Word::connector && w.kind != Word::punct) { out += connector; }
                    break;
                }
                out += connector;
                put_lower(out, Word::number, number, connector);
                while (joins(w.kind)) {
                    put_lower(out, w.kind, w.word, connector);
                    w = next_word(w.rest);
                }
                if (w.kind != Word::invalid && w.kind != Word::connector && w.kind != Word::punct) { out += connector; }
        }
    }
    put_lower(out, w.kind, w.word, connector);
    return utf8(out);
}

}  // namespace

std::span<const Function> case_functions() {
    static const Function table[] = {
        {"upper", "s", false, [](Call&, List& a) { return Value::string(each_rune<to_upper>(a[0].text())); }},
        {"lower", "s", false, [](Call&, List& a) { return Value::string(each_rune<to_lower>(a[0].text())); }},
        {"title", "s", false, [](Call&, List& a) { return Value::string(titled(a[0].text())); }},
        {"untitle", "s", false, [](Call&, List& a) { return Value::string(untitled(a[0].text())); }},
        {"swapcase", "s", false, [](Call&, List& a) { return Value::string(swapped(a[0].text())); }},
        {"nospace", "s", false, [](Call&, List& a) { return Value::string(without_blanks(a[0].text())); }},
        {"initials", "s", false, [](Call&, List& a) { return Value::string(initials_of(a[0].text())); }},
        {"snakecase", "s", false, [](Call&, List& a) { return Value::string(lowered(a[0].text(), '_')); }},
        {"kebabcase", "s", false, [](Call&, List& a) { return Value::string(lowered(a[0].text(), '-')); }},
        {"camelcase", "s", false, [](Call&, List& a) { return Value::string(utf8(pascal(runes(a[0].text())))); }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
