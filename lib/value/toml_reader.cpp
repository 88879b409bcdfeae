// SPDX-License-Identifier: Apache-2.0
#include "value/toml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/number.hpp"
#include "base/text.hpp"
#include "value/text_index.hpp"

namespace kmm::value {

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
    TomlParser(std::string_view text, std::string_view file, const ReadLimits& limits)
        : text_(text), file_(file), limits_(limits), index_(text) {
        root_ = Node::mapping();
        root_.set_mark(Mark{1, 1});
    }

    Node run() {
        while (next_statement()) {
            if (text_[at_] == '[') {
                header();
            } else {
                assignment();
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

    void skip_comment() {
        if (peek() == '#') {
            at_ = std::min(text_.find('\n', at_), text_.size());
        }
    }

    /// Over blanks, comments and line ends; false at the end of the text.
    bool next_statement() {
        while (true) {
            skip_blanks();
            skip_comment();
            if (peek() == '\r' || peek() == '\n') {
                ++at_;
                continue;
            }
            return at_ < text_.size();
        }
    }

    void end_of_line() {
        skip_blanks();
        skip_comment();
        if (peek() == '\r') {
            ++at_;
        }
        if (at_ < text_.size() && peek() != '\n') {
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

    void header() {
        const std::size_t start = at_;
        const bool list = text_.substr(at_).starts_with("[[");
        at_ += list ? 2 : 1;
        Path path;
        while (true) {
            skip_blanks();
            const std::size_t here = at_;
            path.emplace_back(key(), here);
            skip_blanks();
            if (peek() != '.') {
                break;
            }
            ++at_;
        }
        if (!text_.substr(at_).starts_with(list ? "]]" : "]")) {
            throw expected(list ? "\"]]\"" : "\"]\"");
        }
        at_ += list ? 2 : 1;
        open_table(path, list, start);
    }

    /// The mapping `name` of `table`, or the last of a list of that name; made if it is not there.
    static Node& descend(Node& table, const std::string& name, std::size_t offset, Mark mark) {
        Node* found = table.find(name);
        if (found == nullptr) {
            Node made = Node::mapping();
            made.set_mark(mark);
            Node& placed = table.set(name, std::move(made));
            table.members().back().key_mark = mark;
            return placed;
        }
        if (found->is_sequence() && !found->items().empty() && found->items().back().is_mapping()) {
            return found->items().back();
        }
        if (!found->is_mapping()) {
            throw TomlFault{
                offset, fmt::format("\"{}\" has a value already and cannot be a table", base::escape(name)), {}};
        }
        return *found;
    }

    void open_table(const Path& path, bool list, std::size_t start) {
        if (path.size() > limits_.depth_max) {
            throw TomlFault{start, "expected fewer levels of tables", {}};
        }
        Node* table = &root_;
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            table = &descend(*table, path[i].first, path[i].second, index_.mark(path[i].second));
        }
        const auto& [name, offset] = path.back();
        const Mark mark = index_.mark(start);
        Node* found = table->find(name);
        if (!list) {
            if (found != nullptr) {
                repeated(name, offset, *found);
            }
            current_ = &descend(*table, name, offset, mark);
            return;
        }
        if (found == nullptr) {
            found = &table->set(name, Node::sequence());
            found->set_mark(mark);
            table->members().back().key_mark = mark;
        } else if (!found->is_sequence() || (!found->items().empty() && !found->items().back().is_mapping())) {
            throw TomlFault{
                offset,
                fmt::format("\"{}\" has a value already and cannot be a list of tables", base::escape(name)),
                {}};
        }
        count_node(start);
        found->push_back(Node::mapping());
        current_ = &found->items().back();
        current_->set_mark(mark);
    }

    void assignment() {
        const std::size_t start = at_;
        const std::string name = key();
        skip_blanks();
        if (peek() == '.') {
            throw TomlFault{at_, "expected \"=\", found a dotted key", "write a [table] instead"};
        }
        if (peek() != '=') {
            throw expected("\"=\"");
        }
        ++at_;
        skip_blanks();
        Node made = any_value(0);
        Node& table = current_ == nullptr ? root_ : *current_;
        if (const Node* found = table.find(name); found != nullptr) {
            repeated(name, start, *found);
        }
        table.set(name, std::move(made));
        table.members().back().key_mark = index_.mark(start);
    }

    [[noreturn]] void repeated(const std::string& name, std::size_t offset, const Node& first) {
        duplicate_ = duplicate_key(name, file_, index_.mark(offset), first.mark());
        throw TomlFault{offset, {}, {}};
    }

    void count_node(std::size_t offset) {
        if (++nodes_ > limits_.nodes_max) {
            throw TomlFault{offset, fmt::format("expected at most {} values", limits_.nodes_max), {}};
        }
    }

    Node any_value(std::size_t depth) {
        const std::size_t start = at_;
        count_node(start);
        Node made = scalar_or_list(depth);
        made.set_mark(index_.mark(start));
        return made;
    }

    Node scalar_or_list(std::size_t depth) {
        const std::string_view rest = text_.substr(at_);
        if (rest.starts_with("\"\"\"") || rest.starts_with("'''")) {
            throw TomlFault{at_, "expected a string on one line", {}};
        }
        if (peek() == '"' || peek() == '\'') {
            return Node(string());
        }
        if (peek() == '[') {
            return list(depth);
        }
        const std::size_t start = at_;
        while (is_bare_key(peek()) || peek() == '+' || peek() == '.' || peek() == ':') {
            ++at_;
        }
        const std::string_view word = text_.substr(start, at_ - start);
        if (word == "true" || word == "false") {
            return Node(word == "true");
        }
        if (const auto number = base::parse_number<std::int64_t>(word)) {
            return Node(*number);
        }
        at_ = start;
        throw expected("a string, true, false, an integer or a list");
    }

    Node list(std::size_t depth) {
        if (depth >= limits_.depth_max) {
            throw TomlFault{at_, "expected fewer levels of lists", {}};
        }
        ++at_;
        Node made = Node::sequence();
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
        while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
            if (quote == '"' && text_[at_] == '\\') {
                ++at_;
                escape_into(made);
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

    void escape_into(std::string& made) {
        static constexpr std::string_view k_names = "btnfr\"\\";
        static constexpr std::string_view k_bytes = "\b\t\n\f\r\"\\";
        const std::size_t which = k_names.find(peek());
        if (at_ >= text_.size() || which == std::string_view::npos) {
            throw expected("one of the escapes b, t, n, f, r, \" and \\");
        }
        made += k_bytes[which];
        ++at_;
    }

    std::string_view text_;
    std::string_view file_;
    const ReadLimits& limits_;
    TextIndex index_;
    Node root_;
    Node* current_ = nullptr;  ///< the open table; nullptr is the root. Only the last element of any list ever grows.
    std::size_t at_ = 0;
    std::size_t nodes_ = 0;
    std::optional<Diagnostic> duplicate_;
};

}  // namespace

std::optional<Document> read_toml(std::string_view text, std::string_view file, Diagnostics& diagnostics,
                                  const ReadLimits& limits) {
    text = without_bom(text);
    if (!check_text(text, file, limits, diagnostics)) {
        return std::nullopt;
    }
    TomlParser parser(text, file, limits);
    try {
        Document document;
        document.file = std::string(file);
        document.root = parser.run();
        return document;
    } catch (const TomlFault& found) {
        const auto before = diagnostics.size();
        diagnostics.push_back(parser.duplicate() ? *parser.duplicate() : parser.diagnostic(found));
        explain_conflict(text, file, "toml-syntax", before, diagnostics);
        return std::nullopt;
    }
}

}  // namespace kmm::value
