// SPDX-License-Identifier: Apache-2.0
// The document tree every reader produces: values that remember where they stand in the user's file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace kmm::value {

enum class Kind { null, boolean, integer, floating, string, sequence, mapping };

/// "null", "boolean", "integer", "number", "string", "list", "mapping": the words of messages.
[[nodiscard]] std::string_view kind_name(Kind kind) noexcept;

/// Line and column from 1; 0 means "made by the program".
struct Mark {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    friend bool operator==(const Mark&, const Mark&) = default;
};

struct Member;

/// One value. A plain value type: copying copies the subtree. Mapping members keep document order; keys are unique
/// (readers report duplicates). Integers outside int64/uint64 are kept as `floating`.
class Node {
public:
    Node() = default;                       ///< null
    Node(std::string text);                 // NOLINT(google-explicit-constructor): literals of trees read better
    Node(std::string_view text);            // NOLINT
    Node(const char* text);                 // NOLINT
    Node(bool flag);                        // NOLINT
    Node(std::int64_t number);              // NOLINT
    Node(std::uint64_t number);             // NOLINT
    Node(int number);                       // NOLINT
    Node(double number);                    // NOLINT
    [[nodiscard]] static Node mapping(std::initializer_list<std::pair<std::string, Node>> members = {});
    [[nodiscard]] static Node sequence(std::vector<Node> items = {});
    [[nodiscard]] static Node strings(const std::vector<std::string>& items);

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is_null() const noexcept { return kind_ == Kind::null; }
    [[nodiscard]] bool is_mapping() const noexcept { return kind_ == Kind::mapping; }
    [[nodiscard]] bool is_sequence() const noexcept { return kind_ == Kind::sequence; }
    [[nodiscard]] bool is_string() const noexcept { return kind_ == Kind::string; }

    /// The scalar's text: the string itself; for other scalars the canonical JSON text ("true", "42", "1.5").
    /// Empty for null and containers.
    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    [[nodiscard]] std::optional<bool> as_bool() const noexcept;
    [[nodiscard]] std::optional<std::int64_t> as_int() const noexcept;
    [[nodiscard]] std::optional<std::uint64_t> as_uint() const noexcept;

    /// Members of a mapping in document order; empty for other kinds.
    [[nodiscard]] const std::vector<Member>& members() const noexcept { return members_; }
    [[nodiscard]] std::vector<Member>& members() noexcept { return members_; }
    /// Items of a sequence; empty for other kinds.
    [[nodiscard]] const std::vector<Node>& items() const noexcept { return items_; }
    [[nodiscard]] std::vector<Node>& items() noexcept { return items_; }

    /// The member named `key`, nullptr if absent or not a mapping. O(members). The pointer dies with the next change.
    [[nodiscard]] const Node* find(std::string_view key) const noexcept;
    [[nodiscard]] Node* find(std::string_view key) noexcept;
    /// Follows keys downwards; nullptr if any is absent.
    [[nodiscard]] const Node* find_path(std::initializer_list<std::string_view> keys) const noexcept;
    /// The text at `keys` if it is a string there, else "".
    [[nodiscard]] std::string get_string(std::initializer_list<std::string_view> keys) const;
    /// The texts of the items at `keys`; none if there is no sequence.
    [[nodiscard]] std::vector<std::string> get_texts(std::initializer_list<std::string_view> keys) const;
    /// Sets or appends a member; turns a null node into a mapping. Throws a bug for other kinds. Returns the new value.
    Node& set(std::string key, Node value);
    /// Removes a member; true if it was there.
    bool erase(std::string_view key);
    void push_back(Node item);

    /// Where the value starts. For a member, the key's own place is in Member::key_mark.
    [[nodiscard]] Mark mark() const noexcept { return mark_; }
    void set_mark(Mark mark) noexcept { mark_ = mark; }

    /// Equality of kind and content; marks and the order of mapping members do not count.
    [[nodiscard]] bool same_value(const Node& other) const;

private:
    Kind kind_ = Kind::null;
    Mark mark_;
    std::string text_;
    std::vector<Member> members_;
    std::vector<Node> items_;
};

struct Member {
    std::string key;
    Mark key_mark;
    Node value;
};

/// One document of a file.
struct Document {
    std::string file;  ///< as the user named it
    Node root;
    std::size_t index = 0;  ///< 0-based number within the file
    /// Plain YAML scalars that are no strings and do not stand there as Node::text() has them, like 1.10 or yes, in
    /// order.
    std::vector<std::pair<Mark, std::string>> written = {};

    /// A scalar's text as it stands in the file, for messages.
    [[nodiscard]] std::string_view text_of(const Node& scalar) const;
    /// The user-visible place of a mark in this document.
    [[nodiscard]] Position position(Mark mark) const { return Position{file, mark.line, mark.column}; }
};

}  // namespace kmm::value
