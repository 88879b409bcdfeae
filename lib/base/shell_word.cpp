// SPDX-License-Identifier: Apache-2.0
#include "base/shell_word.hpp"

#include <algorithm>

#include "base/printable.hpp"

namespace kmm::base {

bool is_plain_in_shell(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

bool is_plain_word(std::string_view text) noexcept {
    return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), is_plain_in_shell);
}

std::string single_quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'') {
            result += "'\\''";
        } else {
            result += c;
        }
    }
    return result + "'";
}

std::string shell_word(std::string_view text) {
    if (is_plain_word(text)) { return std::string(text); }
    const bool dash = !text.empty() && text.front() == '-';
    return single_quoted(dash ? "./" + std::string(text) : std::string(text));
}

std::string command_word(std::string_view text) { return printable(shell_word(text)); }

}  // namespace kmm::base
