// SPDX-License-Identifier: Apache-2.0
// JSON object by object. A window of the text is indexed by simdjson's first stage; what stands between the tokens is
// checked here, completely, but only wanted members become a tree. An item that a window cuts off is read again with
// more.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "value/json_pieces.hpp"
#include "value/json_tokens.hpp"
#include "value/object_stream.hpp"
#include "value/pairs.hpp"
#include "value/repeats.hpp"
#include "value/scalar.hpp"
#include "value/shape_lookup.hpp"
#include "value/text_index.hpp"

namespace kmm::value {
namespace {

constexpr std::size_t k_members = 8;  ///< room that a mapping begins with

class JsonStream : private JsonTokens {
public:
    JsonStream(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits,
               std::shared_ptr<RepeatTexts> texts = std::make_shared<RepeatTexts>())
        : JsonTokens(read_more, limits.bytes_max),
          repeats_(std::move(texts)),
          read_more_(read_more),
          sink_(sink),
          limits_(limits),
          document_{std::string(file), {}, 0} {}

    /// `pieces` if threads are to read the items.
    std::optional<Diagnostic> read(const InPieces* pieces = nullptr) {
        pieces_ = pieces;
        const bool begun = refill(0) && (!text_.starts_with("\xEF\xBB\xBF") || refill(3));
        if (begun && root()) return std::nullopt;
        return fault(code_, doubt_, document_.file, place_);
    }

    /// Reads pieces of the items of `list` until there are none.
    void read_pieces(JsonPieces& pieces, const Node& list) {
        JsonPieces::Piece piece;
        Document item{document_.file, {}, 0};
        while (pieces.next(piece)) {
            bool is_good = exchange(piece.buffer, piece.size, piece.start), more = true;
            sink_.begin_piece(piece.number);
            while (is_good && more && at_ < index_.size())
                is_good = read_item(item, list, more) && sink_.take_item(item, list);
            if (!is_good) return pieces.fail();
            const std::size_t bracket = more ? 0 : index_[at_ - 1];
            window_.give_back(piece.buffer);
            if (!more) return pieces.end_list(std::move(piece), bracket);
        }
    }

private:
    // ---- values

    [[nodiscard]] bool is_simple_number(std::string_view token) const noexcept {
        return token.size() < 19 && (token[0] != '0' || token.size() == 1) &&
               std::all_of(token.begin(), token.end(), [](char c) { return c >= '0' && c <= '9'; });
    }

    Step scalar(Node* out) {
        if (at_ >= index_.size()) return unexpected("a JSON value");
        const auto token = text_.substr(index_[at_], token_end() - index_[at_]);
        if (token == "true" || token == "false") {
            if (out != nullptr) *out = Node(token == "true");
        } else if (token != "null" && (out != nullptr || !is_simple_number(token))) {
            Node number = parse_json_number(token);
            if (number.is_null()) return unexpected("a JSON value");
            if (out != nullptr) *out = std::move(number);
        }
        ++at_;
        return Step::ok;
    }

    /// A value without making a tree of it. Most of a dump comes through here. What changes at every token is in
    /// locals: a member would be read again after each write of a closing bracket.
    Step skip(std::size_t depth) {
        const char* const text = text_.data();
        const std::size_t tokens = index_.size();
        closers_.resize(limits_.depth_max + 1);
        char* const closers = closers_.data();
        std::size_t at = at_, nodes = nodes_, open = 0, slash = slash_;
        const auto here = [&] { return at < tokens ? text[index_[at]] : '\0'; };
        const auto store = [&] { at_ = at, nodes_ = nodes, slash_ = slash; };
        const auto skip_string = [&] {
            if (slash < index_[at]) slash = std::min(text_.find('\\', index_[at]), text_.size());
            if (slash < index_[at + 1]) {
                store();
                if (!string()) return false;
                slash = slash_;
            }
            ++at;
            return true;
        };
        const auto skip_key = [&] { return here() == '"' && skip_string() && here() == ':' && ++at != 0; };
        for (;;) {
            const char c = here();
            if (++nodes > limits_.json_nodes_max) return store(), limit("expected fewer values in an object");
            if (c == '"') {
                if (!skip_string()) return doubt("invalid escape sequence in a string");
            } else if (c == '{' || c == '[') {
                if (depth + open >= limits_.depth_max) return store(), limit("expected fewer nested levels");
                const char close = c == '{' ? '}' : ']';
                ++at;
                if (here() != close) {
                    closers[open++] = close;
                    if (c == '{' && !skip_key()) return store(), unexpected("a key and ':'");
                    continue;
                }
                ++at;
            } else {
                store();
                if (const auto step = scalar(nullptr); step != Step::ok) return step;
                at = at_;
            }
            while (open > 0 && here() == closers[open - 1]) --open, ++at;
            if (open == 0) return store(), Step::ok;
            if (here() != ',') return store(), unexpected("',' or a closing bracket");
            ++at;
            if (closers[open - 1] == '}' && !skip_key()) return store(), unexpected("a key and ':'");
        }
    }

    Step build(Node& out, const Shape* shape, std::size_t depth) {
        if (++nodes_ > limits_.json_nodes_max) return limit("expected fewer values in an object");
        const auto here = mark();
        const char c = peek();
        Step step = Step::ok;
        if (c == '"') {
            const auto text = string();
            if (!text) return doubt("invalid escape sequence in a string");
            out = Node(*text);
            ++at_;
        } else if (is_repeated(shape, c)) {
            step = repeated(out, shape, depth, here);
        } else if (c == '{' && shape != nullptr && shape->repeats == Shape::Repeats::pairs) {
            step = pairs(out, depth, here) ? Step::ok : mapping(out, shape, depth);
        } else if (c == '{') {
            step = mapping(out, shape, depth);
        } else if (c == '[') {
            step = sequence(out, shape, depth);
        } else {
            step = scalar(&out);
        }
        out.set_mark(here);
        return step;
    }

    static bool is_repeated(const Shape* shape, char c) noexcept {
        return shape != nullptr && ((c == '{' && shape->repeats == Shape::Repeats::mapping) ||
                                    (c == '[' && shape->repeats == Shape::Repeats::list));
    }

    /// The member that makes each of these mappings its own, at the front of the one at the current token, with the
    /// comma behind it.
    [[nodiscard]] bool is_varying(const Shape* shape) {
        if (shape->varies.empty() || at_ + 4 >= index_.size() || text_[index_[at_ + 2]] != ':') return false;
        if (text_[index_[at_ + 1]] != '"' || text_[index_[at_ + 3]] != '"' || text_[index_[at_ + 4]] != ',')
            return false;
        const auto from = index_[at_ + 1];
        return text_.substr(from + 1, shape->varies.size()) == shape->varies &&
               text_[from + 1 + shape->varies.size()] == '"' && !has_escape(from, index_[at_ + 4]);
    }

    /// A list or mapping that may have been read before.
    Step repeated(Node& out, const Shape* shape, std::size_t depth, Mark here) {
        const bool is_mapping = peek() == '{', varies = is_varying(shape);
        if (!varies && !shape->varies.empty()) return mapping(out, shape, depth);
        const std::size_t first = at_ + (varies ? 4 : 0), begin = index_[first], row = numbered_.size();
        const std::size_t nodes = nodes_ + (varies ? 1 : 0);
        const auto* value = repeats_.find(text_.substr(begin), shape);
        if (value != nullptr && sink_.knows(value->number)) {
            nodes_ = nodes + value->nodes;
            if (nodes_ > limits_.json_nodes_max) return limit("expected fewer values in an object");
            out = is_mapping ? Node::mapping() : Node::sequence();
            numbered_.push_back(Repeat{here, value->number});
            if (varies) string_member(out);
            at_ = first + value->tokens;
            return Step::ok;
        }
        const bool is_new = value == nullptr;
        const auto number = is_new ? 0U : value->number;  // reading on may move the values
        numbered_.push_back(Repeat{here, number});  // in front of what is in it
        if (const auto step = is_mapping ? mapping(out, shape, depth) : sequence(out, shape, depth); step != Step::ok)
            return step;
        const auto text = text_.substr(begin, index_[at_ - 1] + 1 - begin);
        if (is_new) numbered_[row].number = repeats_.add(text, shape, at_ - first, nodes_ - nodes, sink_);
        return Step::ok;
    }

    /// The member behind the current token, whose key and text are strings without escapes.
    void string_member(Node& out) {
        ++at_;
        auto& member = out.members().emplace_back(std::string(*string()), mark(), Node());
        at_ += 2;
        member.value = Node(*string());
        member.value.set_mark(mark());
    }

    /// A mapping of strings in the order of its keys, of which members that the sink knows are left out. False, with
    /// nothing read, if it is any other: that is for the ordinary way.
    bool pairs(Node& out, std::size_t depth, Mark here) {
        const auto at = at_, nodes = nodes_, row = numbered_.size();
        const auto cursor = cursor_;
        fresh_.clear();
        out = Node::mapping();
        bool is_plain = depth < limits_.depth_max, more = is_plain;
        for (std::string_view last; more; more = is_plain && peek() == ',') is_plain = pair(out, last, here);
        if (is_plain && peek() == '}') {
            ++at_;
            numbered_.insert(numbered_.end(), fresh_.begin(), fresh_.end());
            return true;
        }
        at_ = at;
        nodes_ = nodes;
        cursor_ = cursor;
        numbered_.resize(row);
        return false;
    }

    /// The member behind the current token; `last` is the key before it.
    bool pair(Node& out, std::string_view& last, Mark here) {
        if (at_ + 4 >= index_.size() || text_[index_[at_ + 1]] != '"') return false;
        const std::size_t colon = index_[at_ + 2], begin = index_[at_ + 1], value = index_[at_ + 3];
        if (text_[colon] != ':' || text_[value] != '"' || ++nodes_ > limits_.json_nodes_max) return false;
        std::size_t key_end = colon, end = index_[at_ + 4];
        while (is_json_space(text_[key_end - 1])) --key_end;
        while (is_json_space(text_[end - 1])) --end;
        if (end - value < 2 || text_[end - 1] != '"' || has_escape(begin, end)) return false;
        const auto key = text_.substr(begin + 1, key_end - begin - 2);
        if (!(last < key)) return false;
        last = key;
        const auto number = pairs_.number(text_.substr(begin, end - begin), sink_);
        if (number != 0 && sink_.knows(number)) {
            numbered_.push_back(Repeat{here, number});
            at_ += 4;
            return true;
        }
        string_member(out);
        if (number != 0) fresh_.push_back(Repeat{out.members().back().value.mark(), number});
        ++at_;
        return true;
    }

    Step sequence(Node& out, const Shape* shape, std::size_t depth) {
        if (depth >= limits_.depth_max) return limit("expected fewer nested levels");
        out = Node::sequence();
        ++at_;
        if (take(']')) return Step::ok;
        do {
            out.items().emplace_back();
            if (const auto step = build(out.items().back(), shape, depth + 1); step != Step::ok) return step;
        } while (take(','));
        return take(']') ? Step::ok : unexpected("',' or ']'");
    }

    /// `depth` is that of the mapping's own value.
    Step mapping(Node& out, const Shape* shape, std::size_t depth) {
        if (depth >= limits_.depth_max) return limit("expected fewer nested levels");
        out = Node::mapping();
        ++at_;
        if (take('}')) return Step::ok;
        SkippedKeys skipped;
        do {
            if (const auto step = member(out, shape, skipped, depth); step != Step::ok) return step;
        } while (take(','));
        if (has_twins(out)) return doubt("expected each key once");
        return take('}') ? Step::ok : unexpected("',' or '}'");
    }

    /// At a key whose value is a string, both being in the window.
    [[nodiscard]] bool is_string_member() const noexcept {
        return at_ + 2 < index_.size() && text_[index_[at_ + 1]] == ':' && text_[index_[at_ + 2]] == '"';
    }

    Step member(Node& out, const Shape* shape, SkippedKeys& skipped, std::size_t depth) {
        if (peek() != '"') return unexpected("a key");
        const auto key = string();
        if (!key) return doubt("invalid escape sequence in a string");
        if (const auto row = find_skipped(shape, *key); row != k_not_skipped) {
            if (!skipped.add(row)) return doubt("expected each key once");
            ++at_;
            return take(':') ? skip(depth + 1) : unexpected("':'");
        }
        if (shape != nullptr && key->find(shape->part) == std::string_view::npos && is_string_member()) {
            at_ += 2;
            return skip(depth + 1);
        }
        const auto* inner = find_inner(shape, *key);
        if (out.members().empty()) out.members().reserve(k_members);
        auto& member = out.members().emplace_back(std::string(*key), mark(), Node());
        ++at_;
        return take(':') ? build(member.value, inner, depth + 1) : unexpected("':'");
    }

    // ---- objects

    /// A mapping whose shape the sink knows, from its kind on.
    Step object(Node& out, const Node* list, std::size_t depth) {
        nodes_ = 0;
        if (peek() != '{') return build(out, nullptr, depth);
        out = Node::mapping();
        out.set_mark(mark());
        ++at_;
        if (take('}')) return Step::ok;
        SkippedKeys skipped;
        const Shape* shape = sink_.shape(out, list);
        do {
            if (const auto step = member(out, shape, skipped, depth); step != Step::ok) return step;
            if (is_kind_read(out)) shape = sink_.shape(out, list);
        } while (take(','));
        if (has_twins(out)) return doubt("expected each key once");
        return take('}') ? Step::ok : unexpected("',' or '}'");
    }

    bool root() {
        auto& root = document_.root;
        SkippedKeys skipped;
        const Shape* shape = nullptr;
        bool more = true;
        const bool opened = complete([&] {
            if (peek() != '{') return unexpected("'{'");
            root = Node::mapping();
            root.set_mark(mark());
            ++at_;
            if (at_ >= index_.size() && !window_.is_last()) return Step::more;
            more = !take('}');
            return Step::ok;
        });
        if (!opened) return false;
        shape = sink_.shape(root, nullptr);
        while (more) {
            const bool read = complete([&] {
                return at_list() ? Step::ok : root_member(shape, skipped);
            });
            if (!read || (at_list() && !items())) return false;
            if (is_kind_read(root)) shape = sink_.shape(root, nullptr);
            if (!complete([&] { return more_follows('}', more); })) return false;
        }
        if (has_twins(root)) return doubt("expected each key once") == Step::ok;
        if (!complete([&] {
                return at_ >= index_.size() && window_.is_last() ? Step::ok : unexpected("the end of the text");
            })) {
            return false;
        }
        sink_.take_repeats(numbered_);
        sink_.take_document(document_);
        return true;
    }

    /// At the member "items" of the root, and all that follows of it is a list.
    bool at_list() {
        if (at_ + 2 >= index_.size() || peek() != '"') return false;
        if (text_[index_[at_ + 1]] != ':' || text_[index_[at_ + 2]] != '[') return false;
        const auto key = string();
        return key && *key == "items";
    }

    Step root_member(const Shape* shape, SkippedKeys& skipped) {
        auto& members = document_.root.members();
        const auto have = members.size();
        auto with_this = skipped;
        nodes_ = 0;
        const auto step = member(document_.root, shape, with_this, 0);
        if (step == Step::ok) skipped = with_this;
        if (step == Step::more && members.size() > have) members.pop_back();
        return step;
    }

    Step more_follows(char close, bool& more) {
        more = take(',');
        return more || take(close) ? Step::ok : unexpected(close == '}' ? "',' or '}'" : "',' or ']'");
    }

    bool items() {
        auto& root = document_.root;
        const auto key_mark = mark();
        at_ += 2;
        Node list = Node::sequence();
        list.set_mark(mark());
        ++at_;
        root.members().push_back(Member{"items", key_mark, std::move(list)});
        const auto row = root.members().size() - 1;
        bool more = true;
        if (!complete([&] {
                if (at_ >= index_.size()) return unexpected("an object or ']'");
                more = !take(']');
                return Step::ok;
            })) {
            return false;
        }
        if (more && pieces_ != nullptr && !in_pieces(root, more)) return false;
        Document item{document_.file, {}, 0};
        while (more) {
            if (!read_item(item, root, more)) return false;
            if (!sink_.take_item(item, root)) root.members()[row].value.push_back(std::move(item.root));
        }
        return true;
    }

    /// An item and what follows it, a comma if there are `more`.
    bool read_item(Document& item, const Node& list, bool& more) {
        const auto read = [&] {
            item.root = Node();
            numbered_.clear();
            item.file = document_.file;  // the sink may have changed it
            return object(item.root, &list, 2);
        };
        if (!complete(read) || !complete([&] { return more_follows(']', more); })) return false;
        sink_.take_repeats(numbered_);
        numbered_.clear();
        return true;
    }

    /// Reads the items in threads if the text, the list and the sink are of that kind: there are no `more` then. False
    /// at a doubt.
    bool in_pieces(const Node& list, bool& more) {
        if (peek() != '{') return true;
        ItemFront front(text_, index_[at_]);
        std::vector<std::unique_ptr<ObjectSink>> parts(2);
        for (auto& part : parts) part = sink_.part();
        if (!front.is_usable() || parts[0] == nullptr || parts[1] == nullptr) return true;
        constexpr std::size_t k_piece_max = std::size_t{16} << 20U;
        JsonPieces pieces(read_more_, window_.read_from(index_[at_]), std::move(front), mark(), pieces_->bytes,
                          std::min(k_piece_max, limits_.bytes_max));
        window_.clear();
        std::vector texts(parts.size(), std::make_shared<RepeatTexts>());  // which end with the threads
        std::atomic<std::size_t> next = 0;
        pieces_->run([&] {
            try {
                const auto number = next++;
                JsonStream(read_more_, document_.file, *parts.at(number), limits_, std::move(texts.at(number)))
                    .read_pieces(pieces, list);
            } catch (...) {
                pieces.fail();  // whoever reads the text again meets it again
            }
        });
        auto end = pieces.take_end();
        if (!end) return false;  // the text is read again, by one that says where
        sink_.join(parts);
        numbered_.clear();
        if (!exchange(end->piece.buffer, end->piece.size, end->piece.start)) return false;
        while (index_[at_] != end->offset) ++at_;
        return complete([&] { return more_follows(']', more); });
    }

    Repeats repeats_;
    Pairs pairs_;
    std::vector<Repeat> numbered_;  ///< of the item or document that is being read
    std::vector<Repeat> fresh_;     ///< members of the mapping that pairs() reads
    const ReadMore& read_more_;
    const InPieces* pieces_ = nullptr;
    ObjectSink& sink_;
    const ReadLimits& limits_;
    Document document_;
    std::size_t nodes_ = 0;
    std::vector<char> closers_;  ///< of the containers that skip() is in
};

}  // namespace

std::optional<Diagnostic>
stream_json(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const ReadLimits& limits) {
    return JsonStream(read_more, file, sink, limits).read();
}

bool stream_json_in_pieces(const ReadMore& read_more, std::string_view file, ObjectSink& sink, const InPieces& pieces,
                           const ReadLimits& limits) {
    return !JsonStream(read_more, file, sink, limits).read(&pieces);
}

}  // namespace kmm::value
