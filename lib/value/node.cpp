// SPDX-License-Identifier: Apache-2.0
#include "value/node.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/number.hpp"
#include "value/scalar.hpp"

namespace kmm::value {

std::string_view kind_name(Kind kind) noexcept {
    switch (kind) {
        case Kind::null: return "null";
        case Kind::boolean: return "boolean";
        case Kind::integer: return "integer";
        case Kind::floating: return "number";
        case Kind::string: return "string";
        case Kind::sequence: return "list";
        case Kind::mapping: return "mapping";
    }
    return "null";
}

Node::Node(std::string text) : kind_(Kind::string), text_(std::move(text)) {}
Node::Node(std::string_view text) : kind_(Kind::string), text_(text) {}
Node::Node(const char* text) : kind_(Kind::string), text_(text) {}
Node::Node(bool flag) : kind_(Kind::boolean), text_(flag ? "true" : "false") {}
Node::Node(std::int64_t number) : kind_(Kind::integer), text_(fmt::format("{}", number)) {}
Node::Node(std::uint64_t number) : kind_(Kind::integer), text_(fmt::format("{}", number)) {}
Node::Node(int number) : Node(static_cast<std::int64_t>(number)) {}
Node::Node(double number) : kind_(Kind::floating), text_(float_text(number)) {
    if (!std::isfinite(number)) throw bug("a number that JSON cannot hold");
}

Node Node::mapping(std::initializer_list<std::pair<std::string, Node>> members) {
    Node node;
    node.kind_ = Kind::mapping;
    node.members_.reserve(members.size());
    for (const auto& [key, value] : members) node.members_.push_back(Member{key, {}, value});
    return node;
}

Node Node::sequence(std::vector<Node> items) {
    Node node;
    node.kind_ = Kind::sequence;
    node.items_ = std::move(items);
    return node;
}

Node Node::strings(const std::vector<std::string>& items) {
    std::vector<Node> nodes;
    nodes.reserve(items.size());
    for (const auto& item : items) nodes.emplace_back(item);
    return sequence(std::move(nodes));
}

std::optional<bool> Node::as_bool() const noexcept {
    if (kind_ != Kind::boolean) return std::nullopt;
    return text_ == "true";
}

namespace {
template <typename Int>
std::optional<Int> parse_int(Kind kind, const std::string& text) noexcept {
    return kind == Kind::integer ? base::parse_number<Int>(text) : std::nullopt;
}
}  // namespace

std::optional<std::int64_t> Node::as_int() const noexcept { return parse_int<std::int64_t>(kind_, text_); }
std::optional<std::uint64_t> Node::as_uint() const noexcept { return parse_int<std::uint64_t>(kind_, text_); }

const Node* Node::find(std::string_view key) const noexcept {
    for (const auto& member : members_) {
        if (member.key == key) return &member.value;
    }
    return nullptr;
}

Node* Node::find(std::string_view key) noexcept {
    return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

const Node* Node::find_path(std::initializer_list<std::string_view> keys) const noexcept {
    const Node* node = this;
    for (const auto key : keys) {
        node = node->find(key);
        if (node == nullptr) return nullptr;
    }
    return node;
}

std::string Node::get_string(std::initializer_list<std::string_view> keys) const {
    const Node* node = find_path(keys);
    return node != nullptr && node->is_string() ? node->text() : std::string();
}

std::vector<std::string> Node::get_texts(std::initializer_list<std::string_view> keys) const {
    std::vector<std::string> texts;
    if (const Node* node = find_path(keys); node != nullptr)
        for (const auto& item : node->items()) texts.push_back(item.text());
    return texts;
}

Node& Node::set(std::string key, Node value) {
    if (kind_ == Kind::null) kind_ = Kind::mapping;
    if (kind_ != Kind::mapping) throw bug("set on a value that is not a mapping");
    if (Node* old = find(key); old != nullptr) {
        *old = std::move(value);
        return *old;
    }
    members_.push_back(Member{std::move(key), {}, std::move(value)});
    return members_.back().value;
}

bool Node::erase(std::string_view key) {
    const auto at = std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.key == key; });
    if (at == members_.end()) return false;
    members_.erase(at);
    return true;
}

void Node::push_back(Node item) {
    if (kind_ == Kind::null) kind_ = Kind::sequence;
    if (kind_ != Kind::sequence) throw bug("push_back on a value that is not a list");
    items_.push_back(std::move(item));
}

bool Node::same_value(const Node& other) const {
    if (kind_ != other.kind_ || text_ != other.text_) return false;
    if (items_.size() != other.items_.size() || members_.size() != other.members_.size()) return false;
    for (std::size_t i = 0; i < items_.size(); ++i) {
        if (!items_[i].same_value(other.items_[i])) return false;
    }
    return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
        const Node* twin = other.find(member.key);
        return twin != nullptr && member.value.same_value(*twin);
    });
}

std::string_view Document::text_of(const Node& scalar) const {
    const Mark mark = scalar.mark();
    const auto found = std::partition_point(written.begin(), written.end(), [&](const auto& entry) {
        return entry.first.line != mark.line ? entry.first.line < mark.line : entry.first.column < mark.column;
    });
    return found != written.end() && found->first == mark ? std::string_view(found->second)
                                                          : std::string_view(scalar.text());
}

}  // namespace kmm::value
