// SPDX-License-Identifier: Apache-2.0
// Where a value ends in YAML or JSON text, given where it starts: readers know starts only.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "value/node.hpp"
#include "value/text_index.hpp"

namespace kmm::value {

/// How a value is written.
enum class Style { empty, plain, quoted, block_text, flow, block, alias };

/// What kind of mapping a key belongs to: in flow style a comma or a closing bracket ends a plain key.
enum class Within { block, flow };

/// Lexical questions about one text. All offsets are bytes from its start; the text must outlive the object.
class TextScan {
public:
    explicit TextScan(std::string_view text) : text_(text), index_(text) {}

    [[nodiscard]] std::string_view text() const noexcept { return text_; }
    [[nodiscard]] const TextIndex& index() const noexcept { return index_; }
    [[nodiscard]] std::size_t start(const Node& node) const noexcept { return index_.offset(node.mark()); }

    /// Behind anchors and tags that start at `offset`, and the blanks that follow them (line breaks included).
    [[nodiscard]] std::size_t skip_properties(std::size_t offset) const noexcept;
    /// Behind blanks and tabs.
    [[nodiscard]] std::size_t skip_blanks(std::size_t offset) const noexcept;
    /// The end of the line without CR and LF.
    [[nodiscard]] std::size_t line_end(std::size_t offset) const noexcept;
    /// True if only blanks stand before `offset` in its line.
    [[nodiscard]] bool is_first_in_line(std::size_t offset) const noexcept;
    /// True if the rest of the line is blank or a comment.
    [[nodiscard]] bool is_rest_empty(std::size_t offset) const noexcept;

    /// Behind the colon of the key at `key`; nullopt if the key has none or is written with '?'.
    [[nodiscard]] std::optional<std::size_t> colon_end(std::size_t key, Within within) const noexcept;
    /// Behind the key itself.
    [[nodiscard]] std::size_t key_end(std::size_t key, Within within) const noexcept;

    /// Style of a member's value; `colon` is behind its colon. `empty` if nothing is written there.
    [[nodiscard]] Style style(const Node& node, std::size_t colon) const noexcept;

    /// Behind the flow collection, quoted text, alias or plain scalar of a flow collection that starts at `offset`.
    [[nodiscard]] std::size_t flow_end(std::size_t offset) const noexcept;

    /// Behind the last content byte of a block mapping's member value: comments and blank lines that follow do not
    /// count. `key_column` is the mapping's column (from 0), `bound` where the next content, or the document's end,
    /// begins.
    [[nodiscard]] std::size_t
    block_end(const Node& node, std::size_t colon, std::size_t key_column, std::size_t bound) const noexcept;

private:
    [[nodiscard]] std::size_t quoted_end(std::size_t offset) const noexcept;
    [[nodiscard]] std::size_t plain_flow_end(std::size_t offset) const noexcept;
    [[nodiscard]] std::size_t
    block_text_end(std::size_t offset, std::size_t key_column, std::size_t bound) const noexcept;
    [[nodiscard]] std::size_t trim_back(std::size_t low, std::size_t bound) const noexcept;

    std::string_view text_;
    TextIndex index_;
};

}  // namespace kmm::value
