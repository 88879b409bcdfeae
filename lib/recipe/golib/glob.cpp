// SPDX-License-Identifier: Apache-2.0
#include "recipe/golib/glob.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::size_t k_alternatives_max = 256;
constexpr std::uint64_t k_work_max = 1'000'000;

/// "{a,b}c" as "ac" and "bc"; false if braces do not fit.
bool alternatives(const std::u32string& pattern, std::vector<std::u32string>& out) {
    std::size_t open = std::u32string::npos;
    int depth = 0;
    std::vector<std::size_t> cuts;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char32_t c = pattern[i];
        if (c == '\\') {
            ++i;
        } else if (c == '[') {
            const std::size_t close = pattern.find(U']', i + 1);
            if (close == std::u32string::npos) { return false; }
            i = close;
        } else if (c == '{') {
            if (depth++ == 0) {
                open = i;
                cuts = {i};
            }
        } else if (c == ',' && depth == 1) {
            cuts.push_back(i);
        } else if (c == '}' && depth > 0 && --depth == 0) {
            cuts.push_back(i);
            for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
                const std::u32string one = pattern.substr(0, open) +
                                           pattern.substr(cuts[k] + 1, cuts[k + 1] - cuts[k] - 1) +
                                           pattern.substr(i + 1);
                if (out.size() > k_alternatives_max || !alternatives(one, out)) { return false; }
            }
            return true;
        }
    }
    if (depth > 0) { return false; }
    out.push_back(pattern);
    return true;
}

bool in_class(std::u32string_view set, char32_t rune) {
    const bool negated = !set.empty() && set[0] == '!';
    if (negated) { set.remove_prefix(1); }
    bool found = set.size() == 3 && set[1] == '-' ? set[0] <= rune && rune <= set[2]
                                                  : set.find(rune) != std::u32string_view::npos;
    return found != negated;
}

bool matches_from(std::u32string_view pattern, std::u32string_view name, std::uint64_t& work) {
    while (!pattern.empty()) {
        if (++work > k_work_max) { return false; }
        const char32_t c = pattern[0];
        if (c == '*') {
            const bool across = pattern.starts_with(U"**");
            while (!pattern.empty() && pattern[0] == '*') { pattern.remove_prefix(1); }
            for (;;) {
                if (matches_from(pattern, name, work)) { return true; }
                if (name.empty() || (!across && name[0] == '/')) { return false; }
                name.remove_prefix(1);
            }
        }
        if (name.empty()) { return false; }
        if (c == '?') {
            if (name[0] == '/') { return false; }
        } else if (c == '[') {
            const std::size_t close = pattern.find(U']', 1);
            if (!in_class(pattern.substr(1, close - 1), name[0])) { return false; }
            pattern.remove_prefix(close);
        } else {
            if (c == '\\' && pattern.size() > 1) { pattern.remove_prefix(1); }
            if (pattern[0] != name[0]) { return false; }
        }
        pattern.remove_prefix(1);
        name.remove_prefix(1);
    }
    return name.empty();
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view name) {
    std::vector<std::u32string> all;
    if (!alternatives(runes(pattern), all)) { return true; }
    const std::u32string text = runes(name);
    for (const auto& one : all) {
        std::uint64_t work = 0;
        if (matches_from(one, text, work)) { return true; }
    }
    return false;
}

}  // namespace kmm::recipe::tmpl
