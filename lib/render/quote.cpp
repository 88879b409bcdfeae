// SPDX-License-Identifier: Apache-2.0
#include "render/quote.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "value/node.hpp"
#include "value/writer.hpp"

namespace kmm::render {

namespace {

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20U || c == '\x7f'; }

/// Length of the bracket expression at the start of `text`, 0 if there is none that is safe as it stands.
std::size_t bracket_length(std::string_view text) noexcept {
    const std::size_t end = text.find(']', 1);
    if (end == std::string_view::npos || end == 1) { return 0; }
    const std::string_view inside = text.substr(1, end - 1);
    const bool safe =
        std::all_of(inside.begin(), inside.end(), [](char c) { return base::is_plain_in_shell(c) || c == '!'; });
    return safe ? end + 1 : 0;
}

std::string dockerfile_escape(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (std::string_view("\\$'\"").find(c) != std::string_view::npos) { result += '\\'; }
        result += c;
    }
    return result;
}

}  // namespace

std::string shell_pattern(std::string_view text) {
    std::string result;
    std::string plain;
    const auto flush = [&] {
        result += std::all_of(plain.begin(), plain.end(), base::is_plain_in_shell) ? plain : base::single_quoted(plain);
        plain.clear();
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::size_t bracket = text[i] == '[' ? bracket_length(text.substr(i)) : 0;
        if (text[i] != '*' && text[i] != '?' && bracket == 0) {
            plain += text[i];
            continue;
        }
        flush();
        const std::size_t length = std::max<std::size_t>(bracket, 1);
        result += text.substr(i, length);
        i += length - 1;
    }
    flush();
    return result;
}

bool fits_copy(std::string_view text) noexcept {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return is_control(c) || std::string_view("*?[]").find(c) != std::string_view::npos;
    });
}

std::string copy_arguments(std::string_view from, std::string_view to) {
    if (base::is_plain_word(from) && base::is_plain_word(to)) { return fmt::format("{} {}", from, to); }
    return value::to_json(value::Node::strings({dockerfile_escape(from), dockerfile_escape(to)}));
}

}  // namespace kmm::render
