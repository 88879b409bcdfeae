// SPDX-License-Identifier: Apache-2.0
#include "toml/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "base/number.hpp"
#include "base/text.hpp"
#include "value/text_index.hpp"
#include "toml/scalar.hpp"

namespace kmm::toml {

namespace {

bool is_bare_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// One fault ends the reading.
struct TomlFault {
    std::size_t offset;
    std::string message;
    std::string hint;
};

class TomlParser {
public:
    TomlParser(std::string_view text, std::string_view file, const value::ReadLimits& limits)
        : text_(text), file_(file), limits_(limits), index_(text) {
        root_ = value::Node::mapping();
        root_.set_mark(value::Mark{1, 1});
    }

    value::Node run() {
        while (next_statement()) {
            if (text_[at_] == '[') {
                header();
            } else {
                assignment(current_, 0);
            }
            end_of_line();
        }
        return std::move(root_);
    }

    [[nodiscard]] Diagnostic diagnostic(const TomlFault& found) const {
        return fault("toml-syntax", found.message, file_, index_.mark(found.offset), found.hint);
    }
    [[nodiscard]] const std::optional<Diagnostic>& duplicate() const noexcept { return duplicate_; }

private:
    using Path = std::vector<std::pair<std::string, std::size_t>>;  ///< name and its offset

    [[nodiscard]] char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

    [[nodiscard]] std::string seen(std::size_t offset) const {
        if (offset >= text_.size()) {
            return ", found the end of the file";
        }
        return text_[offset] == '\n' || text_[offset] == '\r'
                   ? std::string(", found the end of the line")
                   : fmt::format(", found \"{}\"", base::escape(text_.substr(offset, 1)));
    }

    [[nodiscard]] TomlFault expected(const std::string& what) const {
        return {at_, "expected " + what + seen(at_), {}};
    }

    void skip_blanks() {
        while (peek() == ' ' || peek() == '\t') {
            ++at_;
        }
    }

    /// A character that stands nowhere: none of strings, comments or between them.
    [[nodiscard]] bool is_control() const {
        const auto c = static_cast<unsigned char>(text_[at_]);
        return (c < 0x20 && c != '\t' && !is_line_end()) || c == 0x7F;
    }

    [[nodiscard]] bool is_line_end() const { return peek() == '\n' || text_.substr(at_).starts_with("\r\n"); }

    /// Over a line end, if one is here.
    bool skip_line_end() {
        const bool found = is_line_end();
        if (found) {
            at_ += peek() == '\r' ? 2U : 1U;
        }
        return found;
    }

    void skip_comment() {
        if (peek() != '#') {
            return;
        }
        while (at_ < text_.size() && !is_line_end()) {
            if (is_control()) {
                throw expected("a comment without control characters");
            }
            ++at_;
        }
    }

    /// Over blanks, comments and line ends; false at the end of the text.
    bool next_statement() {
        while (true) {
            skip_blanks();
            skip_comment();
            if (!skip_line_end()) {
                return at_ < text_.size();
            }
        }
    }

    void end_of_line() {
        skip_blanks();
        skip_comment();
        if (at_ < text_.size() && !is_line_end()) {
            throw expected("the end of the line");
        }
    }

    std::string key() {
        if (peek() == '"' || peek() == '\'') {
            return string();
        }
        const std::size_t start = at_;
        while (is_bare_key(peek())) {
            ++at_;
        }
        if (at_ == start) {
            throw expected("a key");
        }
        return std::string(text_.substr(start, at_ - start));
    }

    /// Names with '.' between them.
    Path path() {
        Path made;
        while (true) {
            skip_blanks();
            const std::size_t here = at_;
            made.emplace_back(key(), here);
            skip_blanks();
            if (peek() != '.') {
                break;
            }
            ++at_;
        }
        if (made.size() > limits_.depth_max) {
            throw TomlFault{made.front().second, "expected fewer levels of tables", {}};
        }
        return made;
    }

    void header() {
        const std::size_t start = at_;
        const bool list = text_.substr(at_).starts_with("[[");
        at_ += list ? 2 : 1;
        const Path names = path();
        if (!text_.substr(at_).starts_with(list ? "]]" : "]")) {
            throw expected(list ? "\"]]\"" : "\"]\"");
        }
        at_ += list ? 2 : 1;
        open_table(names, list, start);
    }

    /// What is written in one place is whole: an inline table, a list of values.
    [[noreturn]] static void cannot_be_table(const std::string& name, std::size_t offset) {
        throw TomlFault{
            offset, fmt::format("\"{}\" has a value already and cannot be a table", base::escape(name)), {}};
    }

    /// A table, and how its place is written in the sets below.
    struct Place {
        value::Node* table;
        std::string text;
    };

    /// The mapping `name` of a table, or the last of a list of tables of that name; made if it is not there.
    Place descend(const Place& from, const std::string& name, std::size_t offset, value::Mark mark) {
        std::string text = from.text + '\0' + name;
        value::Node* found = from.table->find(name);
        if (found == nullptr) {
            count_node(offset);
            value::Node made = value::Node::mapping();
            made.set_mark(mark);
            value::Node& placed = from.table->set(name, std::move(made));
            from.table->members().back().key_mark = mark;
            return {&placed, std::move(text)};
        }
        if (whole_.contains(text)) {
            cannot_be_table(name, offset);
        }
        if (found->is_sequence() && !found->items().empty() && found->items().back().is_mapping()) {
            text += '\0' + std::to_string(found->items().size());
            return {&found->items().back(), std::move(text)};
        }
        if (!found->is_mapping()) {
            cannot_be_table(name, offset);
        }
        return {found, std::move(text)};
    }

    void open_table(const Path& path, bool list, std::size_t start) {
        Place place{&root_, {}};
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            place = descend(place, path[i].first, path[i].second, index_.mark(path[i].second));
        }
        const auto& [name, offset] = path.back();
        const value::Mark mark = index_.mark(start);
        std::string text = place.text + '\0' + name;
        value::Node* found = place.table->find(name);
        if (!list) {
            // A table that only the names of others have made so far may follow them.
            if (found != nullptr && (!found->is_mapping() || whole_.contains(text) || headed_.contains(text) ||
                                     dotted_.contains(text))) {
                repeated(name, offset, *found);
            }
            current_ = descend(place, name, offset, mark);
            headed_.insert(std::move(text));
            return;
        }
        if (found == nullptr) {
            found = &place.table->set(name, value::Node::sequence());
            found->set_mark(mark);
            place.table->members().back().key_mark = mark;
        } else if (!found->is_sequence() || whole_.contains(text)) {
            throw TomlFault{
                offset,
                fmt::format("\"{}\" has a value already and cannot be a list of tables", base::escape(name)),
                {}};
        }
        count_node(start);
        found->push_back(value::Node::mapping());
        text += '\0' + std::to_string(found->items().size());
        current_ = {&found->items().back(), std::move(text)};
        current_.table->set_mark(mark);
    }

    void assignment(const Place& to, std::size_t depth) {
        const Path names = path();
        if (peek() != '=') {
            throw expected("\"=\"");
        }
        ++at_;
        skip_blanks();
        Place place = to;
        for (std::size_t i = 0; i + 1 < names.size(); ++i) {
            const auto& [name, offset] = names[i];
            const value::Node* found = place.table->find(name);
            if (found != nullptr && !found->is_mapping()) {
                cannot_be_table(name, offset);
            }
            place = descend(place, name, offset, index_.mark(offset));
            if (headed_.contains(place.text)) {
                cannot_be_table(name, offset);
            }
            dotted_.insert(place.text);
        }
        const auto& [name, start] = names.back();
        if (const value::Node* found = place.table->find(name); found != nullptr) {
            repeated(name, start, *found);
        }
        value::Node made = any_value(depth);
        if (made.is_mapping() || made.is_sequence()) {
            whole_.insert(place.text + '\0' + name);
        }
        place.table->set(name, std::move(made));
        place.table->members().back().key_mark = index_.mark(start);
    }

    [[noreturn]] void repeated(const std::string& name, std::size_t offset, const value::Node& first) {
        duplicate_ = duplicate_key(name, file_, index_.mark(offset), first.mark());
        throw TomlFault{offset, {}, {}};
    }

    void count_node(std::size_t offset) {
        if (++nodes_ > limits_.nodes_max) {
            throw TomlFault{offset, fmt::format("expected at most {} values", limits_.nodes_max), {}};
        }
    }

    value::Node any_value(std::size_t depth) {
        const std::size_t start = at_;
        count_node(start);
        value::Node made = scalar_or_list(depth);
        made.set_mark(index_.mark(start));
        return made;
    }

    value::Node scalar_or_list(std::size_t depth) {
        const std::string_view rest = text_.substr(at_);
        if (rest.starts_with("\"\"\"") || rest.starts_with("'''")) {
            return value::Node(long_string());
        }
        if (peek() == '"' || peek() == '\'') {
            return value::Node(string());
        }
        if (peek() == '[') {
            return list(depth);
        }
        if (peek() == '{') {
            return inline_table(depth);
        }
        const std::size_t start = at_;
        skip_word();
        // A blank may stand between a date and a time.
        if (is_date(text_.substr(start, at_ - start)) && peek() == ' ' && at_ + 1 < text_.size() &&
            text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9') {
            ++at_;
            skip_word();
        }
        if (auto made = read_word(text_.substr(start, at_ - start))) {
            return std::move(*made);
        }
        at_ = start;
        throw expected("a string, true, false, a number, a date, a list or a table");
    }

    void skip_word() {
        while (is_bare_key(peek()) || peek() == '+' || peek() == '.' || peek() == ':') {
            ++at_;
        }
    }

    value::Node inline_table(std::size_t depth) {
        if (depth >= limits_.depth_max) {
            throw TomlFault{at_, "expected fewer levels of tables", {}};
        }
        ++at_;
        value::Node made = value::Node::mapping();
        const Place place{&made, fmt::format("{}{{", nodes_)};
        skip_blanks();
        if (peek() == '}') {
            ++at_;
            return made;
        }
        while (true) {
            assignment(place, depth + 1);
            skip_blanks();
            if (peek() == '}') {
                ++at_;
                return made;
            }
            if (peek() != ',') {
                throw expected("\",\" or \"}\"");
            }
            ++at_;
            skip_blanks();
        }
    }

    value::Node list(std::size_t depth) {
        if (depth >= limits_.depth_max) {
            throw TomlFault{at_, "expected fewer levels of lists", {}};
        }
        ++at_;
        value::Node made = value::Node::sequence();
        while (next_statement()) {
            if (peek() == ']') {
                ++at_;
                return made;
            }
            made.push_back(any_value(depth + 1));
            if (!next_statement()) {
                break;
            }
            if (peek() == ',') {
                ++at_;
            } else if (peek() != ']') {
                throw expected("\",\" or \"]\"");
            }
        }
        throw expected("\"]\"");
    }

    std::string string() {
        const std::size_t start = at_;
        const char quote = text_[at_++];
        std::string made;
        while (at_ < text_.size() && text_[at_] != quote && !is_line_end()) {
            if (quote == '"' && text_[at_] == '\\') {
                ++at_;
                escape_into(made);
            } else if (is_control()) {
                throw expected("a string without control characters");
            } else {
                made += text_[at_++];
            }
        }
        if (peek() != quote || at_ >= text_.size()) {
            throw TomlFault{start, "expected a closing quote on the same line, found none", {}};
        }
        ++at_;
        return made;
    }

    /// On several lines, between three quotes of a kind.
    std::string long_string() {
        const std::size_t start = at_;
        const std::string end(3, text_[at_]);
        const bool has_escapes = end[0] == '"';
        at_ += end.size();
        skip_line_end();
        std::string made;
        while (!text_.substr(at_).starts_with(end)) {
            if (at_ >= text_.size()) {
                throw TomlFault{start, "expected three closing quotes, found none", {}};
            }
            if (is_control()) {
                throw expected("a string without control characters");
            }
            if (!has_escapes || text_[at_] != '\\') {
                made += text_[at_++];
                continue;
            }
            ++at_;
            // At the end of a line, it joins the lines.
            const std::size_t escaped = at_;
            skip_blanks();
            if (skip_line_end()) {
                do {
                    skip_blanks();
                } while (skip_line_end());
                continue;
            }
            at_ = escaped;
            escape_into(made);
        }
        at_ += end.size();
        for (int more = 0; more < 2 && peek() == end[0]; ++more) {
            made += text_[at_++];  // up to two quotes may stand before the end
        }
        return made;
    }

    void escape_into(std::string& made) {
        static constexpr std::string_view k_names = "btnfr\"\\";
        static constexpr std::string_view k_bytes = "\b\t\n\f\r\"\\";
        if (peek() == 'u' || peek() == 'U') {
            const std::size_t size = peek() == 'u' ? 4 : 8;
            const auto code = base::parse_number<std::uint32_t>(text_.substr(at_ + 1, size), 16);
            if (text_.size() - at_ <= size || !code || !append_character(made, *code)) {
                throw TomlFault{at_, fmt::format("expected {} hexadecimal digits of a character", size), {}};
            }
            at_ += size + 1;
            return;
        }
        const std::size_t which = k_names.find(peek());
        if (at_ >= text_.size() || which == std::string_view::npos) {
            throw expected("one of the escapes b, t, n, f, r, u, U, \" and \\");
        }
        made += k_bytes[which];
        ++at_;
    }

    std::string_view text_;
    std::string_view file_;
    const value::ReadLimits& limits_;
    value::TextIndex index_;
    value::Node root_;
    Place current_{&root_, {}};  ///< the open table. Only the last element of any list ever grows.
    std::set<std::string> headed_;  ///< places of tables that have a header
    std::set<std::string> dotted_;  ///< places of tables that keys with '.' have made
    std::set<std::string> whole_;   ///< places of lists and inline tables, which nothing can be added to
    std::size_t at_ = 0;
    std::size_t nodes_ = 0;
    std::optional<Diagnostic> duplicate_;
};

}  // namespace

std::optional<value::Document> read(std::string_view text, std::string_view file, Diagnostics& diagnostics,
                                  const value::ReadLimits& limits) {
    text = value::without_bom(text);
    if (!check_text(text, file, limits, diagnostics)) {
        return std::nullopt;
    }
    TomlParser parser(text, file, limits);
    try {
        value::Document document;
        document.file = std::string(file);
        document.root = parser.run();
        return document;
    } catch (const TomlFault& found) {
        const auto before = diagnostics.size();
        diagnostics.push_back(parser.duplicate() ? *parser.duplicate() : parser.diagnostic(found));
        value::explain_conflict(text, file, "toml-syntax", before, diagnostics);
        return std::nullopt;
    }
}

}  // namespace kmm::toml
