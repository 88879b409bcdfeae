// SPDX-License-Identifier: Apache-2.0
#include "recipe/govalue/text.hpp"

#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

std::string replace_all(std::string_view text, std::string_view what, std::string_view by) {
    std::string out;
    if (what.empty()) {
        check_size(text.size() + (text.size() + 1) * by.size());
        out += by;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t width = decode(text, at).width;
            out += text.substr(at, width);
            out += by;
            at += width;
        }
        return out;
    }
    std::size_t at = 0;
    for (;;) {
        const std::size_t found = text.find(what, at);
        if (found == std::string_view::npos) { break; }
        out += text.substr(at, found - at);
        out += by;
        check_size(out.size());
        at = found + what.size();
    }
    out += text.substr(at);
    return out;
}

std::vector<std::string> split_text(std::string_view text, std::string_view separator, std::int64_t count,
                                    Budget* budget) {
    std::vector<std::string> pieces;
    const auto put = [&](std::string_view piece) {
        if (budget != nullptr) { budget->take(sizeof(std::string) + text_bytes(piece.size())); }
        pieces.emplace_back(piece);
    };
    if (count == 0) { return pieces; }
    const auto full = [&] { return count > 0 && static_cast<std::int64_t>(pieces.size()) + 1 >= count; };
    std::size_t at = 0;
    if (separator.empty()) {
        while (at < text.size() && !full()) {
            const std::size_t width = decode(text, at).width;
            put(text.substr(at, width));
            at += width;
        }
        if (at < text.size()) { put(text.substr(at)); }
        return pieces;
    }
    while (!full()) {
        const std::size_t found = text.find(separator, at);
        if (found == std::string_view::npos) { break; }
        put(text.substr(at, found - at));
        at = found + separator.size();
    }
    put(text.substr(at));
    return pieces;
}

namespace {

template <typename Drop>
std::string_view trim_if(std::string_view text, Drop&& drop) {
    while (!text.empty()) {
        const Decoded d = decode(text, 0);
        if (!drop(d.rune)) { break; }
        text.remove_prefix(d.width);
    }
    while (!text.empty()) {
        std::size_t start = text.size() - 1;
        while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U && text.size() - start < 4) {
            --start;
        }
        const Decoded d = decode(text, start);
        const bool whole = d.valid && start + d.width == text.size();
        if (!drop(whole ? d.rune : k_rune_error)) { break; }
        text.remove_suffix(whole ? d.width : 1);
    }
    return text;
}

}  // namespace

std::string_view trim_space(std::string_view text) { return trim_if(text, is_space); }

std::string_view trim_set(std::string_view text, std::string_view set) {
    const std::u32string characters = runes(set);
    return trim_if(text, [&](char32_t rune) { return characters.find(rune) != std::u32string::npos; });
}

std::string join_texts(const std::vector<std::string>& pieces, std::string_view separator) {
    std::uint64_t size = 0;
    for (const auto& piece : pieces) { size += piece.size() + separator.size(); }
    check_size(size);
    std::string out;
    bool first = true;
    for (const auto& piece : pieces) {
        if (!first) { out += separator; }
        first = false;
        out += piece;
    }
    return out;
}

}  // namespace kmm::recipe::tmpl
