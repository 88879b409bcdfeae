// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/ignore.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/template/text.hpp"
#include "recipe/template/unicode.hpp"
#include "recipe/template/url.hpp"

namespace kmm::recipe::chart {

namespace {

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

bool match_runes(std::u32string_view pattern, std::u32string_view name, bool& bad, int budget) {
    std::size_t at = 0;
    while (at < pattern.size()) {
        if (pattern[at] == '*') {
            while (at < pattern.size() && pattern[at] == '*') { ++at; }
            const std::u32string_view rest = pattern.substr(at);
            for (std::size_t i = 0; i <= name.size(); ++i) {
                if (budget > 0 && match_runes(rest, name.substr(i), bad, budget - 1)) { return true; }
                if (bad || i == name.size() || name[i] == '/') { return false; }
            }
            return false;
        }
        if (pattern[at] == '[') {
            const bool matched = match_class(pattern, at, name.empty() ? U'\0' : name[0], bad);
            if (bad || name.empty() || !matched) {
                // The rest is read for its form alone.
                if (!bad) { (void)match_runes(pattern.substr(at), {}, bad, budget); }
                return false;
            }
            name.remove_prefix(1);
            continue;
        }
        if (pattern[at] == '\\' && ++at >= pattern.size()) {
            bad = true;
            return false;
        }
        const bool any = pattern[at] == '?' && (at == 0 || pattern[at - 1] != '\\');
        if (name.empty() || (any ? name[0] == '/' : pattern[at] != name[0])) {
            (void)match_runes(pattern.substr(at + 1), {}, bad, budget);
            return false;
        }
        ++at;
        name.remove_prefix(1);
    }
    return name.empty();
}

}  // namespace

bool match_name(std::string_view pattern, std::string_view name, bool& bad) {
    bad = false;
    const std::u32string wide = tmpl::runes(pattern), text = tmpl::runes(name);
    return match_runes(wide, text, bad, 30) && !bad;
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
