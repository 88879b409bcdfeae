// SPDX-License-Identifier: Apache-2.0
#include "value/yaml_lines.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace kmm::value {

namespace {

constexpr std::size_t k_window = std::size_t{1} << 19U;
constexpr std::size_t k_key_max = 1000;   ///< libyaml takes 1024 characters

using Class = unsigned char;
constexpr Class k_print = 1;         ///< printable ASCII
constexpr Class k_key_char = 2;      ///< of plain keys, but for the colon
constexpr Class k_plain_first = 4;   ///< begins a plain scalar whatever follows

constexpr std::array<Class, 256> k_classes = [] {
    std::array<Class, 256> classes{};
    for (unsigned c = 0x20; c < 0x7F; ++c) {
        const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool word = alnum || c == '_' || c == '.' || c == '/';
        const bool other = c == '+' || c == '~' || c == '(' || c == ')' || c == '$' || c == '^' || c == ';' || c == '<';
        classes[c] = static_cast<Class>(k_print | (word || c == '-' ? k_key_char : 0U) |
                                        (word || other || c == '=' || c == '\\' ? k_plain_first : 0U));
    }
    return classes;
}();

bool is(Class wanted, char c) noexcept { return (k_classes[static_cast<unsigned char>(c)] & wanted) != 0; }

bool is_printable(std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(), [](char c) { return is(k_print, c); });
}

/// One line of a plain scalar, from its first character to the end of the line.
bool is_plain_line(std::string_view text) noexcept {
    if (text.empty() || text.back() == ' ' || text.back() == ':' || text.front() == '#') return false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (!is(k_print, c)) return false;
        if ((c == ' ' && text[at + 1] == '#') || (c == ':' && text[at + 1] == ' ')) return false;
    }
    return true;
}

}  // namespace

bool YamlLines::fill() {
    if (place_start_ > 0) {
        filled_ -= place_start_;
        std::memmove(text_.get(), text_.get() + place_start_, filled_);
        place_start_ = 0;
    }
    if (filled_ == room_) {
        if (room_ > bytes_max_) return false;
        const std::size_t room = std::max(2 * room_, k_window);
        auto text = std::make_unique_for_overwrite<char[]>(room);
        std::copy_n(text_.get(), filled_, text.get());
        text_ = std::move(text);
        room_ = room;
    }
    while (!ended_ && filled_ < room_) {
        const std::size_t got = read_more_(text_.get() + filled_, room_ - filled_);
        filled_ += got;
        ended_ = got == 0;
    }
    return true;
}

/// Remembers the current line, if it is between two objects or two members of the root.
void YamlLines::set_place() {
    const bool is_member = tree_.is_between_members();
    if (!is_member && !tree_.is_between_items()) return;
    place_ = is_member ? YamlRest::At::members : YamlRest::At::items;
    place_start_ = start_;
    place_line_ = line_;
    place_blocks_ = blocks_.size();
    tree_place_ = tree_.place();
}

void YamlLines::take_back() {
    tree_.return_to(tree_place_);
    start_ = place_start_;
    line_ = place_line_;
    blocks_.resize(place_blocks_);
    pending_ = false;
}

YamlRest YamlLines::read() {
    for (Step step = Step::more; step != Step::other;) {
        if (step == Step::more) {
            take_back();
            if (!fill()) break;
            start_ = 0;
        }
        if (start_ == filled_ && ended_) {
            if (pending_ || blocks_.empty()) break;
            close(0);
            tree_.end_document();
            return {};
        }
        step = line();
        if (step == Step::ok) line_ += lines_taken_, start_ = end_ + 1;
    }
    take_back();
    const std::size_t column = place_ == YamlRest::At::items ? blocks_.back().column : 0;
    return YamlRest{place_, {text_.get() + place_start_, filled_ - place_start_}, ended_, place_line_, column};
}

YamlLines::Step YamlLines::whole_line(std::size_t from, std::size_t& end) const noexcept {
    const char* begin = text_.get() + from;
    const auto* found = from == filled_ ? nullptr : static_cast<const char*>(std::memchr(begin, '\n', filled_ - from));
    if (found == nullptr) return ended_ ? Step::other : Step::more;
    end = from + static_cast<std::size_t>(found - begin);
    return Step::ok;
}

YamlLines::Step YamlLines::line() {
    if (!pending_) set_place();
    if (const auto step = whole_line(start_, end_); step != Step::ok) return step;
    lines_taken_ = 1;
    std::size_t at = start_;
    while (text_[at] == ' ') ++at;
    const std::size_t column = at - start_;
    const bool is_entry = text_[at] == '-' && text_[at + 1] == ' ';
    YamlScalar key{};
    std::size_t behind = 0;
    if (!is_entry && !find_key(at, key, behind)) return Step::other;
    if (const auto step = open(column, is_entry); step != Step::ok) return step;
    set_place();
    if (!is_entry) return key_and_value(key, behind, column);
    at += 2;
    if (!find_key(at, key, behind)) return value(at, column);
    tree_.start(Kind::mapping, mark(at));
    blocks_.push_back(Block{Kind::mapping, column + 2});
    return key_and_value(key, behind, column + 2);
}

/// Ends and begins blocks for a line. Nothing has happened if it is not for this reader.
YamlLines::Step YamlLines::open(std::size_t column, bool is_entry) {
    const Mark here = mark(start_ + column);
    const Kind kind = is_entry ? Kind::sequence : Kind::mapping;
    if (blocks_.empty()) {
        if (is_entry || column != 0) return Step::other;
        tree_.begin_document();
    } else if (pending_) {
        const std::size_t parent = blocks_.back().column;
        if (column < parent || (column == parent && !is_entry)) return Step::other;
        pending_ = false;
    } else {
        std::size_t keep = blocks_.size();
        while (keep > 0 && blocks_[keep - 1].column > column) --keep;
        // A sequence may stand at the column of the mapping that it is in.
        if (keep > 1 && !is_entry && blocks_[keep - 1].kind == Kind::sequence && blocks_[keep - 2].column == column)
            --keep;
        if (keep == 0 || blocks_[keep - 1].column != column || blocks_[keep - 1].kind != kind) return Step::other;
        close(keep);
        return Step::ok;
    }
    tree_.start(kind, here);
    blocks_.push_back(Block{kind, column});
    return Step::ok;
}

void YamlLines::close(std::size_t blocks) {
    for (; blocks_.size() > blocks; blocks_.pop_back()) tree_.end();
}

/// A key on one line, with the colon behind it.
bool YamlLines::find_key(std::size_t at, YamlScalar& key, std::size_t& behind) const {
    const char* const text = text_.get();
    const char quote = text[at];
    const bool is_quoted = quote == '"' || quote == '\'';
    std::size_t to = at;
    if (is_quoted) {
        const std::string_view rest(text + at + 1, end_ - at - 1);
        to = at + 1 + std::min(rest.find(quote), rest.size());
        if (to == end_ || text[to + 1] != ':') return false;
        key.text = rest.substr(0, to - at - 1);
        if (!is_printable(key.text) || key.text.find('\\') != std::string_view::npos) return false;
        ++to;
    } else {
        if (!is(k_plain_first, text[at])) return false;
        while (is(k_key_char, text[to]) || (text[to] == ':' && text[to + 1] != ' ' && text[to + 1] != '\n')) ++to;
        key.text = std::string_view(text + at, to - at);
    }
    if (text[to] != ':' || (text[to + 1] != ' ' && text[to + 1] != '\n') || to - at > k_key_max) return false;
    key.plain = !is_quoted;
    key.mark = mark(at);
    behind = to + 1;
    return true;
}

YamlLines::Step YamlLines::key_and_value(const YamlScalar& key, std::size_t behind, std::size_t column) {
    tree_.scalar(key);
    pending_ = behind == end_;
    return pending_ ? Step::ok : value(behind + 1, column);
}

/// A value that starts on the line of its key or of its dash, in a block at `column`.
YamlLines::Step YamlLines::value(std::size_t at, std::size_t column) {
    while (text_[at] == ' ') ++at;
    const char first = text_[at];
    if (first == '"') return double_quoted(at);
    if (first == '\'') return single_quoted(at, column);
    if (first == '|') return literal(at, column);
    const std::string_view rest(text_.get() + at, end_ - at);
    if (rest == "{}" || rest == "[]") {
        tree_.start(first == '{' ? Kind::mapping : Kind::sequence, mark(at));
        tree_.end();
        return Step::ok;
    }
    const bool is_dash = first == '-' && rest.size() > 1 && rest[1] != ' ';
    return is_dash || (!rest.empty() && is(k_plain_first, first)) ? plain(at, column) : Step::other;
}

YamlLines::Step YamlLines::continued(std::size_t from, std::size_t column, std::size_t& text) const noexcept {
    text = 0;
    std::size_t at = from;
    while (at < filled_ && text_[at] == ' ') ++at;
    if (at == filled_) return ended_ ? Step::ok : Step::more;
    if (text_[at] == '\n') return Step::other;
    if (at - from > column) text = at;
    return Step::ok;
}

YamlLines::Step YamlLines::plain(std::size_t at, std::size_t column) {
    std::string_view text(text_.get() + at, end_ - at);
    if (!is_plain_line(text)) return Step::other;
    const Mark here = mark(at);
    for (bool is_first = true;; is_first = false) {
        std::size_t next = 0;
        if (const auto step = continued(end_ + 1, column, next); step != Step::ok) return step;
        if (next == 0) break;
        if (is_first) scratch_ = text;
        if (const auto step = whole_line(next, end_); step != Step::ok) return step;
        const std::string_view more(text_.get() + next, end_ - next);
        if (!is_plain_line(more)) return Step::other;
        scratch_.append(1, ' ').append(more);
        text = scratch_;
        ++lines_taken_;
    }
    tree_.scalar(YamlScalar{text, true, here});
    return Step::ok;
}

YamlLines::Step YamlLines::single_quoted(std::size_t at, std::size_t column) {
    const Mark here = mark(at);
    std::size_t from = at + 1;
    for (scratch_.clear();;) {
        const std::string_view rest(text_.get() + from, end_ - from);
        if (!is_printable(rest)) return Step::other;
        const auto quote = rest.find('\'');
        if (quote == std::string_view::npos) {
            if (rest.empty() || rest.back() == ' ') return Step::other;
            scratch_.append(rest).append(1, ' ');
            std::size_t next = 0;
            if (const auto step = continued(end_ + 1, column, next); step != Step::ok) return step;
            if (next == 0) return Step::other;
            if (const auto step = whole_line(next, end_); step != Step::ok) return step;
            ++lines_taken_;
            from = next;
        } else if (quote + 1 < rest.size() && rest[quote + 1] == '\'') {
            scratch_.append(rest.substr(0, quote + 1));
            from += quote + 2;
        } else {
            if (quote + 1 != rest.size()) return Step::other;
            const bool is_whole = scratch_.empty();
            if (!is_whole) scratch_.append(rest.substr(0, quote));
            tree_.scalar(YamlScalar{is_whole ? rest.substr(0, quote) : std::string_view(scratch_), false, here});
            return Step::ok;
        }
    }
}

YamlLines::Step YamlLines::double_quoted(std::size_t at) {
    const std::string_view rest(text_.get() + at + 1, end_ - at - 1);
    if (rest.empty() || rest.back() != '"' || !is_printable(rest)) return Step::other;
    std::string_view text = rest.substr(0, rest.size() - 1);
    if (text.find_first_of("\\\"") != std::string_view::npos) {
        constexpr std::string_view k_escapes = "\\\"/nt", k_meanings = "\\\"/\n\t";
        scratch_.clear();
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '"') return Step::other;
            if (text[i] != '\\') {
                scratch_ += text[i];
                continue;
            }
            const auto meaning = ++i < text.size() ? k_escapes.find(text[i]) : std::string_view::npos;
            if (meaning == std::string_view::npos) return Step::other;
            scratch_ += k_meanings[meaning];
        }
        text = scratch_;
    }
    tree_.scalar(YamlScalar{text, false, mark(at)});
    return Step::ok;
}

/// "|" or "|-" and the lines behind it.
YamlLines::Step YamlLines::literal(std::size_t at, std::size_t column) {
    const bool strips = text_[at + 1] == '-';
    if (at + (strips ? 2U : 1U) != end_) return Step::other;
    const Mark here = mark(at);
    std::size_t next = 0, indent = 0, blank = 0;
    scratch_.clear();
    for (;; ++lines_taken_) {
        const std::size_t from = end_ + 1;
        if (from < filled_ && text_[from] == '\n' && indent > 0) {
            ++blank;
            ++end_;
            continue;
        }
        if (const auto step = continued(from, indent > 0 ? indent - 1 : column, next); step != Step::ok) return step;
        if (next == 0) break;
        if (indent == 0) {
            indent = next - from;
            if (text_[next] == '\t') return Step::other;
        }
        std::size_t end = 0;
        if (const auto step = whole_line(next, end); step != Step::ok) return step;
        const std::string_view text(text_.get() + from + indent, end - from - indent);
        if (!std::all_of(text.begin(), text.end(), [](char c) { return is(k_print, c) || c == '\t'; }))
            return Step::other;
        scratch_.append(blank, '\n').append(text).append(1, '\n');
        blank = 0;
        end_ = end;
    }
    if (indent == 0) return Step::other;
    if (strips) scratch_.pop_back();
    tree_.scalar(YamlScalar{scratch_, false, here});
    return Step::ok;
}

}  // namespace kmm::value
