// SPDX-License-Identifier: Apache-2.0
#include "value/yaml_tree.hpp"

#include <cstring>

#include "value/scalar.hpp"

namespace kmm::value {

namespace {

/// No word that means something else than itself is that long and starts with a letter.
bool is_surely_text(std::string_view text) noexcept {
    const char first = static_cast<char>(text[0] | 0x20);
    return text.size() > 5 && first >= 'a' && first <= 'z';
}

}  // namespace

void YamlTree::begin_document() {
    nodes_ = bytes_ = 0;
    root_ = Node();
    written_.clear();
}

void YamlTree::end_document() {
    const Document document{file_, std::move(root_), documents_++, std::move(written_)};
    sink_.take_repeats(numbered_);
    numbered_.clear();
    if (!document.root.is_null()) sink_.take_document(document);
}

YamlTree::Place YamlTree::place() const noexcept {
    return Place{stack_.size(),    nodes_,          bytes_,
                 numbered_.size(), written_.size(), stack_.empty() ? SkippedKeys{} : stack_.back().skipped};
}

void YamlTree::return_to(const Place& place) {
    stack_.resize(place.frames);
    nodes_ = place.nodes;
    bytes_ = place.bytes;
    numbered_.resize(place.numbered);
    written_.resize(place.written);
    skipping_ = 0;
    skip_value_ = false;
    recording_ = Recording{};
    if (stack_.empty()) return;
    stack_.back().skipped = place.skipped;
    stack_.back().key_pending = false;
}

void YamlTree::count(Mark mark, std::size_t bytes) {
    bytes_ += bytes;
    if (++nodes_ > limits_.nodes_max || bytes_ > limits_.bytes_max) {
        throw Doubt{"expected fewer values in an object", mark, "document-limit"};
    }
}

void YamlTree::scalar(const YamlScalar& scalar) {
    count(scalar.mark, scalar.text.size());
    if (skipping_ > 0) return;
    take_scalar(scalar);
}

void YamlTree::start(Kind kind, Mark mark) {
    count(mark, 0);
    on_start(kind, mark);
}

void YamlTree::take_scalar(const YamlScalar& scalar) {
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

Node YamlTree::plain_value(const YamlScalar& scalar) {
    if (is_surely_text(scalar.text)) return Node(scalar.text);
    auto plain = resolve_plain(scalar.text);
    if (plain.not_a_number) throw Doubt{"expected a number that JSON can hold", scalar.mark};
    if (is_written_otherwise(plain.node, scalar.text)) written_.emplace_back(scalar.mark, scalar.text);
    return std::move(plain.node);
}

void YamlTree::on_key(const YamlScalar& key) {
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

void YamlTree::on_start(Kind kind, Mark mark) {
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

const Shape* YamlTree::shape_of_value() const noexcept {
    if (stack_.empty()) return nullptr;
    const auto& parent = stack_.back();
    return parent.node.is_mapping() ? find_inner(parent.shape, parent.member.key) : parent.shape;
}

bool YamlTree::is_repeated(Kind kind) const noexcept {
    const auto* shape = shape_of_value();
    return shape != nullptr && shape->varies.empty() &&
           shape->repeats == (kind == Kind::mapping ? Shape::Repeats::mapping : Shape::Repeats::list);
}

void YamlTree::record(const YamlScalar& scalar) {
    const auto length = static_cast<std::uint32_t>(scalar.text.size());
    auto& events = recording_.events;
    events += scalar.plain ? 'p' : 'q';
    events.append(reinterpret_cast<const char*>(&length), sizeof length);
    events += scalar.text;
    recording_.marks.push_back(scalar.mark);
}

void YamlTree::record(Kind kind, Mark mark) {
    if (recording_.open++ == 0) recording_.events.clear(), recording_.marks.clear();
    recording_.events += kind == Kind::mapping ? 'm' : 's';
    recording_.marks.push_back(mark);
}

void YamlTree::finish_recorded() {
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

void YamlTree::replay(const Recording& recorded, std::uint32_t number) {
    const std::string_view events = recorded.events;
    const auto* mark = recorded.marks.data();
    push(events[0] == 'm' ? Kind::mapping : Kind::sequence, *mark++, number);
    for (std::size_t at = 1; at < events.size();) {
        const char what = events[at++];
        if (what == 'e') {
            end();
        } else if (what == 'm' || what == 's') {
            on_start(what == 'm' ? Kind::mapping : Kind::sequence, *mark++);
        } else {
            std::uint32_t length = 0;
            std::memcpy(&length, events.data() + at, sizeof length);
            at += sizeof length;
            take_scalar(YamlScalar{events.substr(at, length), what == 'p', *mark++});
            at += length;
        }
    }
}

void YamlTree::push(Kind kind, Mark mark, std::uint32_t repeat) {
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

void YamlTree::ask_shape(Frame& frame) {
    if (!frame.node.is_mapping()) return;
    if (frame.role == Role::root) frame.shape = sink_.shape(frame.node, nullptr);
    if (frame.role == Role::item) frame.shape = sink_.shape(frame.node, &stack_[0].node);
}

void YamlTree::end() {
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
void YamlTree::finish(Node node) {
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

}  // namespace kmm::value
