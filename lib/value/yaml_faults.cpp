// SPDX-License-Identifier: Apache-2.0
// Source: k8s.io/apimachinery pkg/util/yaml/decoder.go, YAMLReader.Read.
#include "value/yaml_faults.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/text_index.hpp"

namespace kmm::value {

namespace {

/// Where the text from `at` on, which kubectl reads alone, begins with a directive or the end of a document: it refuses
/// both.
std::optional<std::size_t> find_odd_start(std::string_view body, std::size_t at) {
    while (at < body.size()) {
        const auto line = body.substr(at, body.find('\n', at) - at);
        const auto content = base::trim(line);
        if (line.starts_with('%') || (line.starts_with("...") && content == "...")) return at;
        if (!content.empty() && !content.starts_with('#')) return std::nullopt;
        at += line.size() + 1;
    }
    return std::nullopt;
}

}  // namespace

YamlSeparators read_separators(std::string_view body) {
    YamlSeparators found;
    constexpr std::string_view k_separator = "---";
    std::size_t passed = 0;  // where the line behind the separator before begins
    const auto check_start = [&] {
        found.odd = find_odd_start(body, passed);
        if (found.odd) found.end = *found.odd;
        return found.odd.has_value();
    };
    if (check_start()) return found;
    for (std::size_t at = 0; at < body.size();) {
        if (!body.substr(at).starts_with(k_separator)) {
            const auto next = body.find("\n---", at);
            if (next == std::string_view::npos) break;
            at = next + 1;
            continue;
        }
        // A separator before which nothing stands is a line of the next document.
        const bool is_separator = at > passed;
        const auto line_end = std::min(body.find('\n', at), body.size());
        const auto rest_at = at + k_separator.size();
        const auto rest = body.substr(rest_at, line_end - rest_at);
        const auto content = rest.find_first_not_of(" \t\r");
        if (content != std::string_view::npos) {
            const bool is_comment = rest[content] == '#';
            if (!is_comment || (content == 0 && !is_separator)) {
                found.odd = rest_at + content;
                found.end = at;
                return found;
            }
            if (content == 0) found.comments.push_back(rest_at);
        }
        found.last_document = at;
        if (is_separator) {
            passed = line_end + 1;
            if (check_start()) return found;
        }
        at = line_end + 1;
    }
    return found;
}

Diagnostic odd_separator(std::string_view body, std::size_t at, std::string_view file) {
    const auto rest = base::trim(body.substr(at, std::min(body.find('\n', at), at + 60) - at));
    const auto mark = TextIndex(body).mark(at);
    if (rest.starts_with('%') && mark.column == 1)
        return fault("yaml-syntax", fmt::format("expected a document, found the directive '{}'", base::escape(rest)),
                     file, mark, "remove the line: kubectl, which splits a file at its --- lines, refuses it");
    if (rest == "..." && mark.column == 1)
        return fault("yaml-syntax", "expected a document, found its end '...'", file, mark,
                     "remove the line: kubectl refuses a document that begins with it");
    if (rest.starts_with('#'))
        return fault("yaml-syntax", "expected a blank between '---' and a comment, found none", file, mark,
                     "write --- # and the comment");
    return fault("yaml-syntax",
                 fmt::format("expected nothing but a comment after '---', found '{}'", base::escape(rest)), file, mark,
                 "begin the document on the next line, and indent a line that is part of a text: kubectl refuses the "
                 "file otherwise");
}

namespace {

/// A character that looks like a blank.
struct LookAlike {
    std::string_view bytes, name;
    bool is_wide;
};
constexpr std::array<LookAlike, 4> k_look_alikes = {{{"\xc2\xa0", "U+00A0 (no-break space)", true},
                                                     {"\xe2\x80\x8b", "U+200B (zero width space)", false},
                                                     {"\xe2\x80\xaf", "U+202F (narrow no-break space)", true},
                                                     {"\xe3\x80\x80", "U+3000 (ideographic space)", true}}};

/// The first of them that stands among the indentation of a line, behind the dash of an item or behind a colon.
const LookAlike* find_look_alike(std::string_view line) {
    char quote = '\0';
    bool is_before_content = true;
    for (std::size_t at = 0; at < line.size(); ++at) {
        const char c = line[at];
        const auto* found = std::find_if(k_look_alikes.begin(), k_look_alikes.end(), [&](const LookAlike& one) {
            return line.substr(at).starts_with(one.bytes);
        });
        if (found != k_look_alikes.end() && quote == '\0' && (is_before_content || line[at - 1] == ':')) return found;
        if (quote != '\0') {
            if (c == '\\' && quote == '"') ++at;
            if (c == quote) quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        }
        is_before_content = is_before_content && (c == ' ' || c == '-');
    }
    return nullptr;
}

}  // namespace

std::string unseen_hint(std::string_view body, Mark mark) {
    std::size_t number = 0;
    for (const auto line : base::split(body, '\n')) {
        if (++number > mark.line) break;
        if (number + 1 < mark.line) continue;
        const auto indentation = line.substr(0, line.find_first_not_of(" \t"));
        if (indentation.find('\t') != std::string_view::npos)
            return "indent with blanks: there is a tab at the start of this line or the one before";
        if (const auto* found = find_look_alike(line); found != nullptr) {
            return found->is_wide ? fmt::format("replace {} in line {} with a blank", found->name, number)
                                  : fmt::format("remove {} from line {}", found->name, number);
        }
    }
    return {};
}

std::string syntax_hint(std::string_view message) {
    struct Row {
        std::string_view part, hint;
    };
    constexpr std::array<Row, 8> k_rows = {{
        {"unknown escape character", "in single quotes a backslash is one, as regular expressions want it"},
        {"illegal map value", "check the indentation, and quote a value that contains ': '"},
        {"end of map not found", "check the indentation of this line and the one before"},
        {"end of sequence not found", "check the indentation of the list items"},
        {"end of map flow", "a '{' is not closed; a text in it that has { } [ ] or a comma needs quotes"},
        {"end of sequence flow", "a '[' is not closed; a text in it that has { } [ ] or a comma needs quotes"},
        {"tab", "indent with spaces"},
        {"unknown token", "quote a value that starts with @, ` or %, and indent with spaces, not tabs"},
    }};
    for (const auto& row : k_rows) {
        if (message.find(row.part) != std::string_view::npos) return std::string(row.hint);
    }
    return {};
}

}  // namespace kmm::value
