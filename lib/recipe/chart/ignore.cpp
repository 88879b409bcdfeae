// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/ignore.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::chart {

namespace {

constexpr std::size_t k_line_max = 65536;  // of Go's bufio.Scanner

/// One character of a class, which may be escaped; false at its end.
bool class_character(std::u32string_view pattern, std::size_t& at, char32_t& out, bool& bad) {
    if (at >= pattern.size() || pattern[at] == '-' || pattern[at] == ']') {
        bad = true;
        return false;
    }
    if (pattern[at] == '\\' && ++at >= pattern.size()) {
        bad = true;
        return false;
    }
    out = pattern[at++];
    if (at >= pattern.size()) { bad = true; }
    return !bad;
}

bool match_class(std::u32string_view pattern, std::size_t& at, char32_t rune, bool& bad) {
    ++at;
    const bool negated = at < pattern.size() && pattern[at] == '^';
    if (negated) { ++at; }
    bool matched = false;
    for (int count = 0;; ++count) {
        if (at < pattern.size() && pattern[at] == ']' && count > 0) { break; }
        char32_t low = 0, high = 0;
        if (!class_character(pattern, at, low, bad)) { return false; }
        high = low;
        if (pattern[at] == '-') {
            ++at;
            if (!class_character(pattern, at, high, bad)) { return false; }
        }
        matched = matched || (low <= rune && rune <= high);
    }
    ++at;
    return matched != negated;
}

/// Takes the stars in front of `pattern`, and what follows up to the next star, which is `chunk`.
bool take_chunk(std::u32string_view& pattern, std::u32string_view& chunk) {
    const std::size_t stars = std::min(pattern.find_first_not_of(U'*'), pattern.size());
    pattern.remove_prefix(stars);
    std::size_t at = 0;
    for (bool in_class = false; at < pattern.size() && (in_class || pattern[at] != '*'); ++at) {
        if (pattern[at] == '\\' && at + 1 < pattern.size()) { ++at; }
        if (pattern[at] == '[') { in_class = true; }
        if (pattern[at] == ']') { in_class = false; }
    }
    chunk = pattern.substr(0, at);
    pattern.remove_prefix(at);
    return stars > 0;
}

/// Whether `name` begins with what `chunk`, which has no stars, stands for; `rest` becomes what follows. The form of
/// all of `chunk` is checked.
bool match_chunk(std::u32string_view chunk, std::u32string_view name, std::u32string_view& rest, bool& bad) {
    bool failed = false;
    for (std::size_t at = 0; at < chunk.size();) {
        failed = failed || name.empty();
        if (chunk[at] == '[') {
            const bool matched = match_class(chunk, at, failed ? U'\0' : name[0], bad);
            if (bad) { return false; }
            failed = failed || !matched;
        } else if (chunk[at] == '?') {
            failed = failed || name[0] == '/';
            ++at;
        } else {
            if (chunk[at] == '\\' && ++at >= chunk.size()) {
                bad = true;
                return false;
            }
            failed = failed || chunk[at] != name[0];
            ++at;
        }
        if (!failed) { name.remove_prefix(1); }
    }
    rest = name;
    return !failed;
}

/// As filepath.Match: a chunk is taken where it fits first.
bool match_runes(std::u32string_view pattern, std::u32string_view name, bool& bad) {
    while (!pattern.empty()) {
        std::u32string_view chunk, rest;
        const bool star = take_chunk(pattern, chunk);
        if (star && chunk.empty()) { return name.find(U'/') == std::u32string_view::npos; }
        const auto fits = [&](std::u32string_view at) {
            return match_chunk(chunk, at, rest, bad) && (rest.empty() || !pattern.empty());
        };
        bool matched = fits(name);
        for (std::size_t i = 0; star && !matched && !bad && i < name.size() && name[i] != '/'; ++i) {
            matched = fits(name.substr(i + 1));
        }
        if (matched) {
            name = rest;
            continue;
        }
        while (!pattern.empty() && !bad) {
            (void)take_chunk(pattern, chunk);
            (void)match_chunk(chunk, {}, rest, bad);
        }
        return false;
    }
    return name.empty();
}

}  // namespace

bool match_name(std::string_view pattern, std::string_view name, bool& bad) {
    bad = false;
    const std::u32string wide = tmpl::runes(pattern), text = tmpl::runes(name);
    return match_runes(wide, text, bad) && !bad;
}

Ignore::Rule Ignore::parse(std::string_view line) {
    Rule rule;
    if (line.starts_with('!')) {
        rule.negated = true;
        line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
        rule.directory = true;
        line.remove_suffix(1);
    }
    rule.whole = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) { line.remove_prefix(1); }
    rule.pattern = line;
    return rule;
}

Ignore::Ignore() = default;

void Ignore::add(std::string_view text, const std::string& file) {
    std::size_t number = 0;
    for (const auto& piece : tmpl::split_text(text, "\n")) {
        ++number;
        std::string_view line = tmpl::trim_space(piece);
        if (number == 1 && line.starts_with("\xEF\xBB\xBF")) { line = tmpl::trim_space(line.substr(3)); }
        if (line.empty() || line.starts_with('#')) { continue; }
        const auto fail = [&](const char* message) {
            return Error(Exit::data, "bad-ignore", message).at(Position{file, number, 1});
        };
        if (piece.size() >= k_line_max) { throw fail("the line is longer than 64 KiB"); }
        if (line.find("**") != std::string_view::npos) { throw fail("double-star (**) syntax is not supported"); }
        bool bad = false;
        (void)match_name(line, "abc", bad);
        if (bad) { throw fail("the pattern cannot be read"); }
        rules_.push_back(parse(line));
    }
}

bool Ignore::ignores(std::string_view name, bool is_directory) const {
    const std::string last = tmpl::base_path(name);
    const auto matches = [&](const Rule& rule) {
        bool bad = false;
        return match_name(rule.pattern, rule.whole ? name : std::string_view(last), bad);
    };
    static const Rule hidden = parse("templates/.?*");
    for (const auto& rule : rules_) {
        if (rule.negated) {
            if ((rule.directory && !is_directory) || !matches(rule)) { return true; }
        } else if ((!rule.directory || is_directory) && matches(rule)) {
            return true;
        }
    }
    return matches(hidden);
}

}  // namespace kmm::recipe::chart
