// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/regexp.hpp"

#include <algorithm>

#include <re2/re2.h>

namespace kmm::plan {

namespace {

/// Rewrites Go's `(?<name>` to RE2's `(?P<name>` and looks for `\C`, both outside of classes, escapes and \Q...\E.
struct Translation {
    std::string text;
    bool any_byte = false;  ///< `\C` was seen
};

Translation translate(std::string_view text) {
    Translation result;
    bool in_class = false;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view rest = text.substr(i);
        if (quoted) {
            quoted = !rest.starts_with("\\E");
        } else if (rest.starts_with("\\Q")) {
            quoted = true;
        } else if (rest.size() >= 2 && rest.front() == '\\') {
            result.any_byte = result.any_byte || rest[1] == 'C';
            result.text += rest.front();
            ++i;
        } else if (in_class) {
            in_class = rest.front() != ']';
        } else if (rest.front() == '[') {
            in_class = true;
            // A bracket right after the opening one (or its negation) is a plain character.
            const std::size_t first = rest.size() > 1 && rest[1] == '^' ? 2 : 1;
            if (rest.size() > first && rest[first] == ']') {
                result.text += rest.substr(0, first);
                i += first;
            }
        } else if (rest.starts_with("(?<") && !rest.starts_with("(?<=") && !rest.starts_with("(?<!")) {
            result.text += "(?P<";
            i += 2;
            continue;
        }
        result.text += text[i];
    }
    return result;
}

}  // namespace

Regexp::Regexp(const std::string& text) {
    const Translation translation = translate(text);
    if (translation.any_byte) {
        error_ = "invalid escape sequence: \\C";
        return;
    }
    RE2::Options options;
    options.set_log_errors(false);
    re_ = std::make_unique<RE2>(translation.text, options);
    if (!re_->ok()) { error_ = re_->error(); }
}

Regexp::~Regexp() = default;
Regexp::Regexp(Regexp&&) noexcept = default;
Regexp& Regexp::operator=(Regexp&&) noexcept = default;

bool Regexp::search(std::string_view subject) const {
    return error_.empty() && RE2::PartialMatch(re2::StringPiece(subject.data(), subject.size()), *re_);
}

std::string with_literal_plus(std::string_view text) {
    const auto is_plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    const auto begins_plain = [&](std::string_view rest) {  // as rt, (rt|64k) and (?:rt)
        if (rest.starts_with("(?:")) {
            rest.remove_prefix(3);
        } else if (rest.starts_with('(')) {
            rest.remove_prefix(1);
        }
        return !rest.empty() && is_plain(rest.front());
    };
    std::string result;
    bool in_class = false;
    char before = 0;  // the last character if it stands for itself
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (text.substr(i).starts_with("\\Q")) {
            const std::size_t end = std::min(text.find("\\E", i), text.size() - 2);
            result += text.substr(i, end + 2 - i);
            i = end + 1;
            before = 0;
        } else if (c == '\\' && i + 1 < text.size()) {
            result += text.substr(i, 2);
            ++i;
            before = 0;
        } else if (!in_class && c == '+' && before != 0 && begins_plain(text.substr(i + 1))) {
            result += "[+]";
            before = 0;
        } else {
            if (c == '[') { in_class = true; }
            if (c == ']') { in_class = false; }
            result += c;
            before = !in_class && is_plain(c) ? c : 0;
        }
    }
    return result;
}

}  // namespace kmm::plan
