// SPDX-License-Identifier: Apache-2.0
#include "recipe/govalue/unquote.hpp"

#include <cstdint>

#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

/// Appends what an escape at `at`, behind the backslash, stands for; false if it is wrong.
bool unescape(std::string_view text, std::size_t& at, char quote, std::string& out) {
    if (at >= text.size()) { return false; }
    const char c = text[at++];
    constexpr std::string_view k_names = "abfnrtv\\", k_codes = "\a\b\f\n\r\t\v\\";
    if (const std::size_t i = k_names.find(c); i != std::string_view::npos) {
        out += k_codes[i];
        return true;
    }
    if (c == quote && (c == '"' || c == '\'')) {
        out += c;
        return true;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
        if (at + digits > text.size()) { return false; }
        std::uint32_t code = 0;
        for (std::size_t i = 0; i < digits; ++i) {
            const char d = text[at++];
            const int value = d >= '0' && d <= '9'   ? d - '0'
                              : d >= 'a' && d <= 'f' ? d - 'a' + 10
                              : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                                     : -1;
            if (value < 0) { return false; }
            code = code * 16 + static_cast<std::uint32_t>(value);
        }
        if (c == 'x') {
            out += static_cast<char>(code);
            return true;
        }
        if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) { return false; }
        append_rune(out, code);
        return true;
    }
    if (c < '0' || c > '7' || at + 2 > text.size()) { return false; }
    int code = c - '0';
    for (int i = 0; i < 2; ++i) {
        const char d = text[at++];
        if (d < '0' || d > '7') { return false; }
        code = code * 8 + (d - '0');
    }
    if (code > 255) { return false; }
    out += static_cast<char>(code);
    return true;
}

std::optional<std::string> unquote_with(std::string_view quoted, char quote) {
    if (quoted.size() < 2 || quoted.front() != quote || quoted.back() != quote) { return std::nullopt; }
    const std::string_view text = quoted.substr(1, quoted.size() - 2);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] == '\n' || text[at] == quote) { return std::nullopt; }
        if (text[at] != '\\') {
            out += text[at++];
            continue;
        }
        ++at;
        if (!unescape(text, at, quote, out)) { return std::nullopt; }
    }
    return out;
}

}  // namespace

std::optional<std::string> unquote(std::string_view quoted) { return unquote_with(quoted, '"'); }

std::optional<char32_t> unquote_rune(std::string_view quoted) {
    const auto text = unquote_with(quoted, '\'');
    if (!text || text->empty()) { return std::nullopt; }
    // '\xff' is the number 255, not a byte of UTF-8.
    if (text->size() == 1) { return static_cast<unsigned char>((*text)[0]); }
    const Decoded d = decode(*text, 0);
    return d.width == text->size() && d.valid ? std::optional(d.rune) : std::nullopt;
}

}  // namespace kmm::recipe::tmpl
