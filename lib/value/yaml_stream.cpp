// SPDX-License-Identifier: Apache-2.0
// Adapter of libyaml's event parser, many times faster than yaml-cpp's: YAML object by object, as long as nothing about
// the text is in doubt. It reads what YamlLines leaves to it.
#include <yaml.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "value/mark_cursor.hpp"
#include "value/object_stream.hpp"
#include "value/text_index.hpp"
#include "value/yaml_faults.hpp"
#include "value/yaml_lines.hpp"
#include "value/yaml_stream.hpp"
#include "value/yaml_tree.hpp"

namespace kmm::value {
namespace {

/// libyaml counts columns in characters, this toolkit in bytes. Also notices what libyaml takes for a line's end, or
/// leaves out, and others do not: NEL, LS, PS, a CR alone, byte order marks.
class WideCharacters {
public:
    /// The next bytes of the text.
    void add(std::string_view text) {
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            if (byte < 0x80U || byte >= 0xC0U) ++characters_;
            if (byte >= 0xC0U) rows_.push_back(Row{line_, characters_, 0});
            if (byte >= 0x80U && byte < 0xC0U && !rows_.empty()) ++rows_.back().more;
            ++bytes_;
            if (c == '\n') {
                ++line_;
                characters_ = bytes_ = 0;
            }
            if (after_cr_ && c != '\n') odd_line_end_ = true;
            after_cr_ = c == '\r';
            last_ = (last_ << 8U) | byte;
            if ((last_ & 0xFFFFU) == 0xC285U || (last_ & 0xFFFFFEU) == 0xE280A8U) odd_line_end_ = true;
            if ((last_ & 0xFFFFFFU) == 0xEFBBBFU) odd_line_end_ = true;
        }
    }

    /// As add, for text without bytes outside ASCII and CRs.
    void add_plain(std::string_view text) {
        const auto passed = count_lines(text);
        line_ += passed.lines;
        characters_ = (passed.lines > 0 ? 0 : characters_) + text.size() - passed.last_start;
        bytes_ = (passed.lines > 0 ? 0 : bytes_) + text.size() - passed.last_start;
        if (!text.empty() && after_cr_ && text[0] != '\n') odd_line_end_ = true;
        if (!text.empty()) after_cr_ = false;
    }

    /// Where the text ends: how many lines before, and how many bytes of the last one.
    struct End {
        std::size_t lines = 0, bytes = 0;
    };
    [[nodiscard]] End end() const noexcept { return {line_, bytes_}; }

    [[nodiscard]] bool has_odd_line_end() const noexcept { return odd_line_end_; }
    [[nodiscard]] bool ends_with_cr() const noexcept { return after_cr_; }

    [[nodiscard]] Mark mark(const yaml_mark_t& mark) const noexcept {
        auto column = mark.column + 1;
        if (!rows_.empty()) {
            auto row =
                std::partition_point(rows_.begin(), rows_.end(), [&](const Row& r) { return r.line < mark.line; });
            for (; row != rows_.end() && row->line == mark.line && row->character <= mark.column; ++row)
                column += row->more;
        }
        return Mark{static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(column)};
    }

private:
    /// A character of several bytes: the `character`th of its line, `more` bytes than one.
    struct Row {
        std::size_t line, character, more;
    };
    std::vector<Row> rows_;
    std::size_t line_ = 0, characters_ = 0, bytes_ = 0;  ///< of the last line: characters and bytes
    std::uint32_t last_ = 0;
    bool after_cr_ = false, odd_line_end_ = false;
};

bool is_plain_text(std::string_view text) noexcept {
    unsigned high = 0;
    for (const char c : text) high |= static_cast<unsigned>(static_cast<unsigned char>(c));
    return high < 0x80U && text.find('\r') == std::string_view::npos;
}

/// Gives a tree the events of a text, or of the rest of one.
class YamlEvents {
public:
    YamlEvents(const ReadMore& read_more, YamlTree& tree, const YamlRest& rest)
        : read_more_(read_more), tree_(tree), front_(rest.text), is_whole_(rest.is_whole), line_(rest.line) {
        // Libyaml sees one member or item before those that follow.
        if (rest.at == YamlRest::At::items) {
            front_.insert(0, "x:\n" + std::string(rest.column, ' ') + "- \"\"\n");
            line_ -= 2;
            known_ = 6;
        } else if (rest.at == YamlRest::At::members) {
            front_.insert(0, "x: \"\"\n");
            line_ -= 1;
            known_ = 5;
        }
        if (yaml_parser_initialize(&parser_) == 0) throw bug("no memory for a YAML parser");
        yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
        yaml_parser_set_input(&parser_, &YamlEvents::feed, this);
    }
    ~YamlEvents() { yaml_parser_delete(&parser_); }
    YamlEvents(const YamlEvents&) = delete;
    YamlEvents& operator=(const YamlEvents&) = delete;

    void read() {
        while (next()) {
        }
    }

private:
    static int feed(void* self, unsigned char* buffer, std::size_t size, std::size_t* read) {
        auto& stream = *static_cast<YamlEvents*>(self);
        try {
            auto* bytes = reinterpret_cast<char*>(buffer);
            *read = stream.front_.copy(bytes, size, stream.front_at_);
            stream.front_at_ += *read;
            if (*read == 0 && !stream.is_whole_) *read = stream.read_more_(bytes, size);
            stream.piece_ = stream.wide_.end();
            stream.piece_kept_ = static_cast<std::size_t>(buffer - stream.parser_.raw_buffer.start);
            const std::string_view text(bytes, *read);
            if (is_plain_text(text)) {
                stream.wide_.add_plain(text);
            } else {
                stream.wide_.add(text);
            }
            return 1;
        } catch (...) {
            stream.thrown_ = std::current_exception();  // not through C code
            return 0;
        }
    }

    /// Owns one event.
    struct Event {
        yaml_event_t event{};
        Event() = default;
        ~Event() { yaml_event_delete(&event); }
        Event(const Event&) = delete;
        Event& operator=(const Event&) = delete;
    };

    [[nodiscard]] Mark mark(const yaml_mark_t& mark) const noexcept {
        Mark place = wide_.mark(mark);
        place.line += static_cast<std::uint32_t>(line_);
        return place;
    }

    /// Of the byte at which libyaml's reader stopped: such a fault has no mark.
    [[nodiscard]] Mark mark_of_byte() const noexcept {
        const auto& raw = parser_.raw_buffer;
        const std::string_view passed(reinterpret_cast<const char*>(raw.start),
                                      static_cast<std::size_t>(raw.pointer - raw.start));
        const auto count = count_lines(passed);
        const auto column = (count.lines > 0 ? 0 : piece_.bytes - piece_kept_) + passed.size() - count.last_start;
        return Mark{static_cast<std::uint32_t>(piece_.lines + count.lines + line_ + 1),
                    static_cast<std::uint32_t>(column + 1)};
    }

    bool next() {
        Event holder;
        auto& event = holder.event;
        if (yaml_parser_parse(&parser_, &event) == 0) {
            if (thrown_) std::rethrow_exception(thrown_);
            throw Doubt{parser_.problem == nullptr ? "no YAML" : parser_.problem,
                        parser_.error == YAML_READER_ERROR ? mark_of_byte() : mark(parser_.problem_mark)};
        }
        if (wide_.has_odd_line_end()) throw Doubt{"expected lines that end with LF", mark(event.start_mark)};
        if (known_ > 0) {
            --known_;
            return true;
        }
        switch (event.type) {
            case YAML_DOCUMENT_START_EVENT:
                if (event.data.document_start.version_directive != nullptr ||
                    event.data.document_start.tag_directives.start != event.data.document_start.tag_directives.end) {
                    throw Doubt{"expected no line with a directive", mark(event.start_mark)};
                }
                begin_document(event);
                tree_.begin_document();
                break;
            case YAML_DOCUMENT_END_EVENT: tree_.end_document(); break;
            case YAML_ALIAS_EVENT: throw Doubt{"expected no alias", mark(event.start_mark)};
            case YAML_SCALAR_EVENT: on_scalar(event); break;
            case YAML_SEQUENCE_START_EVENT:
                check(event, event.data.sequence_start.anchor, event.data.sequence_start.tag);
                check_separator(event);
                tree_.start(Kind::sequence, mark(event.start_mark));
                break;
            case YAML_MAPPING_START_EVENT:
                check(event, event.data.mapping_start.anchor, event.data.mapping_start.tag);
                check_separator(event);
                tree_.start(Kind::mapping, mark(event.start_mark));
                break;
            case YAML_SEQUENCE_END_EVENT:
            case YAML_MAPPING_END_EVENT: tree_.end(); break;
            case YAML_STREAM_END_EVENT:
                if (wide_.ends_with_cr()) throw Doubt{"expected lines that end with LF", mark(event.start_mark)};
                return false;
            default: break;
        }
        return true;
    }

    /// kubectl splits a text at lines "---" alone.
    void begin_document(const yaml_event_t& event) {
        if (event.data.document_start.implicit != 0) {
            if (has_document_) throw Doubt{"expected a line --- before a document", mark(event.start_mark)};
        } else {
            separator_line_ = event.end_mark.line;
        }
        has_document_ = true;
    }

    /// What stands on the line of a "---".
    void check_separator(const yaml_event_t& event) {
        if (event.start_mark.line == separator_line_)
            throw Doubt{"expected nothing but a comment after ---", mark(event.start_mark)};
    }

    /// A text of which a line may begin with "---": a key at the start of one, or a text that goes on there.
    void check_separator(const yaml_event_t& event, std::string_view text, yaml_scalar_style_t style) {
        check_separator(event);
        if (text.find("---") == std::string_view::npos) return;
        const bool may_go_on = style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE ||
                               (style == YAML_PLAIN_SCALAR_STYLE && event.start_mark.column == 0);
        if ((event.start_mark.column == 0 && text.starts_with("---")) ||
            (may_go_on && event.start_mark.line != event.end_mark.line))
            throw Doubt{"expected nothing but a comment after ---", mark(event.start_mark)};
    }

    void check(const yaml_event_t& event, const yaml_char_t* anchor, const yaml_char_t* tag) {
        if (anchor != nullptr || tag != nullptr) throw Doubt{"expected no anchor and no tag", mark(event.start_mark)};
    }

    void on_scalar(const yaml_event_t& event) {
        const auto& scalar = event.data.scalar;
        check(event, scalar.anchor, scalar.tag);
        const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
        const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
        if (plain && text.empty()) throw Doubt{"expected a value, found none", mark(event.start_mark)};
        check_separator(event, text, scalar.style);
        tree_.scalar(YamlScalar{text, plain, mark(event.start_mark)});
    }

    yaml_parser_t parser_{};
    const ReadMore& read_more_;
    YamlTree& tree_;
    std::string front_;          ///< of the text, in front of what read_more_ gives
    std::size_t front_at_ = 0;
    bool is_whole_;              ///< it gives nothing
    std::size_t line_ = 0;       ///< lines before the text, which may be less than none
    std::size_t known_ = 0;      ///< events that the tree has
    std::size_t separator_line_ = std::size_t(-1);  ///< of the last "---"
    bool has_document_ = false;
    WideCharacters wide_;
    WideCharacters::End piece_;    ///< where the piece of text that libyaml got last begins
    std::size_t piece_kept_ = 0;   ///< bytes of a character that libyaml had before it
    std::exception_ptr thrown_;
};

std::optional<Diagnostic> stream(const ReadMore& read_more, std::string_view file, ObjectSink& sink,
                                 const ReadLimits& limits, bool by_lines) {
    YamlTree tree(file, sink, limits);
    try {
        YamlLines lines(read_more, tree, limits.bytes_max);
        const auto rest = by_lines ? lines.read() : YamlRest{YamlRest::At::document, {}, false, 0, 0};
        if (rest.at != YamlRest::At::nothing) YamlEvents(read_more, tree, rest).read();
    } catch (const Doubt& doubt) {
        return fault(doubt.code, doubt.message, file, doubt.mark);
    }
    return std::nullopt;
}

/// Owns a parser.
struct PlainParser {
    yaml_parser_t parser{};
    explicit PlainParser(std::string_view text) {
        if (yaml_parser_initialize(&parser) == 0) throw bug("no memory for a YAML parser");
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    }
    ~PlainParser() { yaml_parser_delete(&parser); }
    PlainParser(const PlainParser&) = delete;
    PlainParser& operator=(const PlainParser&) = delete;
};

/// Offset of the first byte of a character, counted from 0; the text's size behind the last one.
std::size_t offset_of_character(std::string_view text, std::size_t number) noexcept {
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool begins_one = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
        if (begins_one && number-- == 0) return at;
    }
    return text.size();
}

}  // namespace

std::optional<LibyamlFault> find_libyaml_fault(std::string_view text) {
    PlainParser holder(text);
    for (auto type = YAML_NO_EVENT; type != YAML_STREAM_END_EVENT;) {
        yaml_event_t event{};
        if (yaml_parser_parse(&holder.parser, &event) == 0) {
            const auto& parser = holder.parser;
            const auto offset = parser.error == YAML_READER_ERROR
                                    ? parser.problem_offset
                                    : offset_of_character(text, parser.problem_mark.index);
            return LibyamlFault{parser.problem == nullptr ? "no YAML" : parser.problem, TextIndex(text).mark(offset)};
        }
        type = event.type;
        yaml_event_delete(&event);
    }
    return std::nullopt;
}

std::optional<Diagnostic>
stream_yaml(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits) {
    return stream(read_more, file, sink, limits, true);
}

std::optional<Diagnostic>
stream_libyaml(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits) {
    return stream(read_more, file, sink, limits, false);
}

}  // namespace kmm::value
