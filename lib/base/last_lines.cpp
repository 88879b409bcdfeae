// SPDX-License-Identifier: Apache-2.0
#include "base/last_lines.hpp"

#include "base/text.hpp"

namespace kmm::base {

std::vector<std::string_view> last_lines(std::string_view text, std::size_t most) {
    std::vector<std::string_view> lines;
    for (const std::string_view line : split(text, '\n')) {
        if (const std::string_view trimmed = trim(line); !trimmed.empty()) lines.push_back(trimmed);
    }
    if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most));
    return lines;
}

std::string_view last_line(std::string_view text) {
    const auto lines = last_lines(text, 1);
    return lines.empty() ? std::string_view() : lines.front();
}

}  // namespace kmm::base
