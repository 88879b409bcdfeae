// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/config_lines.hpp"

#include <utility>

namespace kmm::kmod {

std::vector<std::string> config_words(std::string_view line) {
    std::vector<std::string> words;
    std::string word;
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        if (!quoted &&
            (c == ' ' || c == '\t' || c == '\r')) {  // a file with CR LF: the kernel takes the CR for a blank, too
            if (!word.empty()) words.push_back(std::move(word));
            word.clear();
        } else {
            word += c;
        }
    }
    if (!word.empty()) words.push_back(std::move(word));
    return words;
}

std::vector<ConfigLine> config_lines(std::string_view text) {
    std::vector<ConfigLine> lines;
    std::string line;
    std::size_t number = 1;
    std::size_t first = 1;
    const auto end_line = [&] {
        auto words = config_words(line);
        line.clear();
        if (!words.empty() && words.front().front() != '#') lines.push_back({first, std::move(words)});
        first = number;
    };
    // A backslash takes a line break away with itself, and stands for whatever else follows it.
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool literal = text[i] == '\\' && i + 1 < text.size();
        const char c = text[literal ? ++i : i];
        if (c == '\n') ++number;
        if (c != '\n') {
            line += c;
        } else if (!literal) {
            end_line();
        }
    }
    end_line();
    return lines;
}

}  // namespace kmm::kmod
