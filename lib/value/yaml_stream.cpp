// SPDX-License-Identifier: Apache-2.0
// Adapter of libyaml's event parser, many times faster than yaml-cpp's: YAML object by object, as long as nothing about
// the text is in doubt.
#include <yaml.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "value/mark_cursor.hpp"
#include "value/object_stream.hpp"
#include "value/repeats.hpp"
#include "value/scalar.hpp"
#include "value/shape_lookup.hpp"
#include "value/text_index.hpp"

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
            if (c == '\n') {
                ++line_;
                characters_ = 0;
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
        if (!text.empty() && after_cr_ && text[0] != '\n') odd_line_end_ = true;
        if (!text.empty()) after_cr_ = false;
    }

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
    std::size_t line_ = 0, characters_ = 0;
    std::uint32_t last_ = 0;
    bool after_cr_ = false, odd_line_end_ = false;
};

bool is_plain_text(std::string_view text) noexcept {
    unsigned high = 0;
    for (const char c : text) high |= static_cast<unsigned>(static_cast<unsigned char>(c));
    return high < 0x80U && text.find('\r') == std::string_view::npos;
}

struct Doubt {
    std::string message;
    Mark mark;
    std::string code = "yaml-syntax";
};

class YamlStream {
public:
    YamlStream(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits)
        : read_more_(read_more), file_(file), sink_(sink), limits_(limits) {
        if (yaml_parser_initialize(&parser_) == 0) throw bug("no memory for a YAML parser");
        yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
        yaml_parser_set_input(&parser_, &YamlStream::feed, this);
    }
    ~YamlStream() { yaml_parser_delete(&parser_); }
    YamlStream(const YamlStream&) = delete;
    YamlStream& operator=(const YamlStream&) = delete;

    std::optional<Diagnostic> read() {
        try {
            while (next()) {
            }
        } catch (const Doubt& doubt) {
            return fault(doubt.code, doubt.message, file_, doubt.mark);
        }
        return std::nullopt;
    }

private:
    enum class Role { part, root, item, list };

    /// A scalar event.
    struct Scalar {
        std::string_view text;
        bool plain;
        Mark mark;
    };

    /// The events of a value that may have been read before. Scalars are 'p' or 'q', their length and text; 'm', 's'
    /// and 'e' are the start of a mapping, of a sequence, and the end of either. All but ends have marks.
    struct Recording {
        std::string events;
        std::vector<Mark> marks;
        std::size_t open = 0;  ///< containers; 0 if nothing is recorded
    };

    struct Frame {
        Node node;
        const Shape* shape = nullptr;
        SkippedKeys skipped;
        Member member;             ///< the key whose value comes next
        bool key_pending = false;
        Role role = Role::part;
    };

    static int feed(void* self, unsigned char* buffer, std::size_t size, std::size_t* read) {
        auto& stream = *static_cast<YamlStream*>(self);
        try {
            auto* bytes = reinterpret_cast<char*>(buffer);
            *read = stream.read_more_(bytes, size);
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

    bool next() {
        Event holder;
        auto& event = holder.event;
        if (yaml_parser_parse(&parser_, &event) == 0) {
            if (thrown_) std::rethrow_exception(thrown_);
            throw Doubt{parser_.problem == nullptr ? "no YAML" : parser_.problem, wide_.mark(parser_.problem_mark)};
        }
        if (wide_.has_odd_line_end()) throw Doubt{"expected lines that end with LF", wide_.mark(event.start_mark)};
        switch (event.type) {
            case YAML_DOCUMENT_START_EVENT:
                if (event.data.document_start.tag_directives.start != event.data.document_start.tag_directives.end) {
                    throw Doubt{"expected no %TAG line", wide_.mark(event.start_mark)};
                }
                nodes_ = bytes_ = 0;
                root_ = Node();
                written_.clear();
                break;
            case YAML_DOCUMENT_END_EVENT: {
                const Document document{file_, std::move(root_), documents_++, std::move(written_)};
                sink_.take_repeats(numbered_);
                numbered_.clear();
                if (!document.root.is_null()) sink_.take_document(document);
                break;
            }
            case YAML_ALIAS_EVENT: throw Doubt{"expected no alias", wide_.mark(event.start_mark)};
            case YAML_SCALAR_EVENT: on_scalar(event); break;
            case YAML_SEQUENCE_START_EVENT:
                check(event, event.data.sequence_start.anchor, event.data.sequence_start.tag, 0);
                on_start(Kind::sequence, wide_.mark(event.start_mark));
                break;
            case YAML_MAPPING_START_EVENT:
                check(event, event.data.mapping_start.anchor, event.data.mapping_start.tag, 0);
                on_start(Kind::mapping, wide_.mark(event.start_mark));
                break;
            case YAML_SEQUENCE_END_EVENT:
            case YAML_MAPPING_END_EVENT: on_end(); break;
            case YAML_STREAM_END_EVENT:
                if (wide_.ends_with_cr()) throw Doubt{"expected lines that end with LF", wide_.mark(event.start_mark)};
                return false;
            default: break;
        }
        return true;
    }

    void check(const yaml_event_t& event, const yaml_char_t* anchor, const yaml_char_t* tag, std::size_t bytes) {
        if (anchor != nullptr || tag != nullptr)
            throw Doubt{"expected no anchor and no tag", wide_.mark(event.start_mark)};
        bytes_ += bytes;
        if (++nodes_ > limits_.nodes_max || bytes_ > limits_.bytes_max) {
            throw Doubt{"expected fewer values in an object", wide_.mark(event.start_mark), "document-limit"};
        }
    }

    [[nodiscard]] bool at_key() const noexcept {
        return !stack_.empty() && stack_.back().node.is_mapping() && !stack_.back().key_pending;
    }

    void on_scalar(const yaml_event_t& event) {
        const auto& scalar = event.data.scalar;
        check(event, scalar.anchor, scalar.tag, scalar.length);
        const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
        const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
        if (plain && text.empty()) throw Doubt{"expected a value, found none", wide_.mark(event.start_mark)};
        if (skipping_ > 0) return;
        take_scalar(Scalar{text, plain, wide_.mark(event.start_mark)});
    }

    void take_scalar(const Scalar& scalar) {
        if (recording_.open > 0) return record(scalar);
        if (skipping_ > 0) return;
        const bool is_key = at_key();
        if (skip_value_ && !is_key) {
            skip_value_ = false;
            stack_.back().key_pending = false;
            return;
        }
        if (is_key) return on_key(scalar);
        auto value = scalar.plain ? plain_value(scalar) : Node(scalar.text);
        value.set_mark(scalar.mark);
        finish(std::move(value));
    }

    /// No word that means something else than itself is that long and starts with a letter.
    static bool is_surely_text(std::string_view text) noexcept {
        const char first = static_cast<char>(text[0] | 0x20);
        return text.size() > 5 && first >= 'a' && first <= 'z';
    }

    Node plain_value(const Scalar& scalar) {
        if (is_surely_text(scalar.text)) return Node(scalar.text);
        auto plain = resolve_plain(scalar.text);
        if (plain.not_a_number) throw Doubt{"expected a number that JSON can hold", scalar.mark};
        if (is_written_otherwise(plain.node, scalar.text)) written_.emplace_back(scalar.mark, scalar.text);
        return std::move(plain.node);
    }

    void on_key(const Scalar& key) {
        auto& frame = stack_.back();
        const bool is_text =
            !key.plain || is_surely_text(key.text) || (key.text != "<<" && resolve_plain(key.text).node.is_string());
        if (!is_text) throw Doubt{"expected a string as key", key.mark};
        frame.key_pending = true;
        if (const auto row = find_skipped(frame.shape, key.text); row != k_not_skipped) {
            if (!frame.skipped.add(row)) throw Doubt{"expected each key once", key.mark};
            skip_value_ = true;
            return;
        }
        frame.member.key = key.text;
        frame.member.key_mark = key.mark;
    }

    void on_start(Kind kind, Mark mark) {
        if (recording_.open == 0 && at_key()) throw Doubt{"expected a string as key", mark};
        if (stack_.size() + skipping_ + recording_.open >= limits_.depth_max)
            throw Doubt{"expected fewer nested levels", mark, "document-limit"};
        if (skipping_ > 0 || skip_value_) {
            skip_value_ = false;
            ++skipping_;
            return;
        }
        if (recording_.open > 0 || is_repeated(kind)) return record(kind, mark);
        push(kind, mark, 0);
    }

    /// Of a value that comes next.
    [[nodiscard]] const Shape* shape_of_value() const noexcept {
        if (stack_.empty()) return nullptr;
        const auto& parent = stack_.back();
        return parent.node.is_mapping() ? find_inner(parent.shape, parent.member.key) : parent.shape;
    }

    [[nodiscard]] bool is_repeated(Kind kind) const noexcept {
        const auto* shape = shape_of_value();
        return shape != nullptr && shape->varies.empty() &&
               shape->repeats == (kind == Kind::mapping ? Shape::Repeats::mapping : Shape::Repeats::list);
    }

    void record(const Scalar& scalar) {
        const auto length = static_cast<std::uint32_t>(scalar.text.size());
        auto& events = recording_.events;
        events += scalar.plain ? 'p' : 'q';
        events.append(reinterpret_cast<const char*>(&length), sizeof length);
        events += scalar.text;
        recording_.marks.push_back(scalar.mark);
    }

    void record(Kind kind, Mark mark) {
        if (recording_.open++ == 0) recording_.events.clear(), recording_.marks.clear();
        recording_.events += kind == Kind::mapping ? 'm' : 's';
        recording_.marks.push_back(mark);
    }

    /// The value whose events are recorded, from what is known of it or from its events.
    void finish_recorded() {
        const auto* value = repeats_.find(recording_.events, shape_of_value());
        if (value != nullptr && sink_.knows(value->number)) {
            auto node = recording_.events[0] == 'm' ? Node::mapping() : Node::sequence();
            node.set_mark(recording_.marks[0]);
            numbered_.push_back(Repeat{recording_.marks[0], value->number});
            return finish(std::move(node));
        }
        const auto number =
            value != nullptr ? value->number : repeats_.add(recording_.events, shape_of_value(), 0, 0, sink_);
        const auto recorded = std::move(recording_);  // a value in it may be recorded again
        recording_ = Recording{};
        replay(recorded, number);
    }

    void replay(const Recording& recorded, std::uint32_t number) {
        const std::string_view events = recorded.events;
        const auto* mark = recorded.marks.data();
        push(events[0] == 'm' ? Kind::mapping : Kind::sequence, *mark++, number);
        for (std::size_t at = 1; at < events.size();) {
            const char what = events[at++];
            if (what == 'e') {
                on_end();
            } else if (what == 'm' || what == 's') {
                on_start(what == 'm' ? Kind::mapping : Kind::sequence, *mark++);
            } else {
                std::uint32_t length = 0;
                std::memcpy(&length, events.data() + at, sizeof length);
                at += sizeof length;
                take_scalar(Scalar{events.substr(at, length), what == 'p', *mark++});
                at += length;
            }
        }
    }

    void push(Kind kind, Mark mark, std::uint32_t repeat) {
        Frame frame;
        frame.node = kind == Kind::mapping ? Node::mapping() : Node::sequence();
        frame.node.set_mark(mark);
        if (repeat != 0) numbered_.push_back(Repeat{mark, repeat});
        if (stack_.empty()) {
            frame.role = kind == Kind::mapping ? Role::root : Role::part;
        } else {
            const auto& parent = stack_.back();
            const bool is_items = parent.role == Role::root && kind == Kind::sequence && parent.member.key == "items";
            frame.role = is_items ? Role::list : parent.role == Role::list ? Role::item : Role::part;
            frame.shape = shape_of_value();
        }
        if (frame.role == Role::list) frame.shape = nullptr;
        if (frame.role == Role::item) nodes_ = bytes_ = 0;
        stack_.push_back(std::move(frame));
        ask_shape(stack_.back());
    }

    void ask_shape(Frame& frame) {
        if (!frame.node.is_mapping()) return;
        if (frame.role == Role::root) frame.shape = sink_.shape(frame.node, nullptr);
        if (frame.role == Role::item) frame.shape = sink_.shape(frame.node, &stack_[0].node);
    }

    void on_end() {
        if (recording_.open > 0) {
            recording_.events += 'e';
            if (--recording_.open == 0) finish_recorded();
            return;
        }
        if (skipping_ > 0) {
            if (--skipping_ == 0) stack_.back().key_pending = false;
            return;
        }
        Frame frame = std::move(stack_.back());
        stack_.pop_back();
        if (frame.node.is_mapping() && has_twins(frame.node)) {
            throw Doubt{"expected each key once", frame.node.mark()};
        }
        finish(std::move(frame.node));
    }

    /// A complete value goes to its parent, an item to the sink.
    void finish(Node node) {
        if (stack_.empty()) {
            root_ = std::move(node);
            return;
        }
        auto& parent = stack_.back();
        if (parent.node.is_mapping()) {
            parent.key_pending = false;
            parent.member.value = std::move(node);
            parent.node.members().push_back(std::move(parent.member));
            parent.member = Member{};
            if (is_kind_read(parent.node)) ask_shape(parent);
            return;
        }
        if (parent.role == Role::list) {
            Document item{file_, std::move(node), documents_, std::move(written_)};
            sink_.take_repeats(numbered_);
            numbered_.clear();
            const bool is_taken = sink_.take_item(item, stack_[0].node);
            written_ = is_taken ? decltype(written_){} : std::move(item.written);
            if (is_taken) return;
            node = std::move(item.root);
        }
        parent.node.push_back(std::move(node));
    }

    yaml_parser_t parser_{};
    const ReadMore& read_more_;
    std::string file_;
    ObjectSink& sink_;
    const ReadLimits& limits_;
    WideCharacters wide_;
    std::exception_ptr thrown_;
    std::vector<Frame> stack_;
    Recording recording_;
    Repeats repeats_;
    std::vector<Repeat> numbered_;  ///< of the item or document that is being read
    Node root_;
    std::vector<std::pair<Mark, std::string>> written_;
    std::size_t documents_ = 0, nodes_ = 0, bytes_ = 0;
    std::size_t skipping_ = 0;   ///< open containers of a value that is left out
    bool skip_value_ = false;    ///< the next value is left out
};

}  // namespace

std::optional<Diagnostic>
stream_yaml(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits) {
    return YamlStream(read_more, file, sink, limits).read();
}

}  // namespace kmm::value
