// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/pace.hpp"

#include <fmt/format.h>

namespace kmm::upgrade {
namespace {

/// "HH:MM" as minutes; nullopt for anything else.
std::optional<int> minute_of(std::string_view text) {
    if (text.size() != 5 || text[2] != ':') return std::nullopt;
    for (const std::size_t at : {0U, 1U, 3U, 4U})
        if (text[at] < '0' || text[at] > '9') return std::nullopt;
    const int hours = (text[0] - '0') * 10 + (text[1] - '0');
    const int minutes = (text[3] - '0') * 10 + (text[4] - '0');
    if (hours > 23 || minutes > 59) return std::nullopt;
    return hours * 60 + minutes;
}

}  // namespace

bool Window::contains(int minute) const noexcept {
    return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}

int Window::minutes_until(int minute) const noexcept {
    if (contains(minute)) return 0;
    return (from - minute + k_minutes_of_day) % k_minutes_of_day;
}

std::optional<Window> parse_window(std::string_view text) {
    const auto dash = text.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const auto from = minute_of(text.substr(0, dash));
    const auto to = minute_of(text.substr(dash + 1));
    if (!from || !to || *from == *to) return std::nullopt;
    return Window{*from, *to};
}

std::string clock_time(int minute) { return fmt::format("{:02}:{:02}", minute / 60, minute % 60); }

std::optional<std::vector<std::string>> command_words(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    char quote = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        const bool has_next = at + 1 < text.size();
        if (quote == '\'') {
            if (c == '\'') quote = 0;
            else word += c;
        } else if (c == '\\') {
            if (!has_next) return std::nullopt;
            const char next = text[++at];
            // Inside double quotes a backslash stays before what it does not quote.
            if (quote == '"' && next != '"' && next != '\\') word += c;
            word += next;
            in_word = true;
        } else if (quote == '"') {
            if (c == '"') quote = 0;
            else word += c;
        } else if (c == '\'' || c == '"') {
            quote = c;
            in_word = true;
        } else if (c == ' ' || c == '\t' || c == '\n') {
            if (in_word) words.push_back(std::move(word));
            word.clear();
            in_word = false;
        } else {
            word += c;
            in_word = true;
        }
    }
    if (quote != 0) return std::nullopt;
    if (in_word) words.push_back(std::move(word));
    if (words.empty() || words.front().empty()) return std::nullopt;
    return words;
}

}  // namespace kmm::upgrade
