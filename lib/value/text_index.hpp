// SPDX-License-Identifier: Apache-2.0
// Offsets of a text as lines and columns, and what both readers check before they parse.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::value {

/// Line starts of one text. A line ends with LF (a CR before it belongs to the line). Keeps a view: the text must
/// outlive it.
class TextIndex {
public:
    explicit TextIndex(std::string_view text);

    /// Line and column of the byte at `offset`; an offset at or after the end gives the place just behind the text.
    [[nodiscard]] Mark mark(std::size_t offset) const noexcept;
    /// The inverse of mark(); the text's size for a mark outside.
    [[nodiscard]] std::size_t offset(Mark mark) const noexcept;
    /// Offset of the first byte of the line that holds `offset`.
    [[nodiscard]] std::size_t line_start(std::size_t offset) const noexcept;
    /// Offset just behind the line's LF, or the text's size.
    [[nodiscard]] std::size_t next_line(std::size_t offset) const noexcept;

private:
    std::string_view text_;
    std::vector<std::size_t> starts_;
};

/// The text without a UTF-8 byte order mark.
[[nodiscard]] std::string_view without_bom(std::string_view text) noexcept;

/// Offset of the first byte that does not begin or continue a valid UTF-8 sequence.
[[nodiscard]] std::optional<std::size_t> find_invalid_utf8(std::string_view text) noexcept;

/// Behind the quoted YAML or JSON text that opens at `offset`; nullopt if it is never closed. In single quotes a
/// doubled quote stands for one, in double quotes a backslash escapes.
[[nodiscard]] std::optional<std::size_t> find_quoted_end(std::string_view text, std::size_t offset) noexcept;

/// Behind YAML anchors and tags that start at `offset`, and the white space that follows them.
[[nodiscard]] std::size_t skip_yaml_properties(std::string_view text, std::size_t offset) noexcept;

/// A diagnostic of severity error at a mark.
[[nodiscard]] Diagnostic fault(std::string code, std::string message, std::string_view file, Mark mark,
                               std::string hint = {});

/// The duplicate-key fault: names both places.
[[nodiscard]] Diagnostic duplicate_key(std::string_view key, std::string_view file, Mark mark, Mark first);

/// Conflict markers of git make a text unreadable in many ways: if an error was added to `diagnostics` after the first
/// `before` ones and a line of the text is such a marker, one fault at that line takes the place of what was added,
/// with `code`. O(text).
void explain_conflict(std::string_view text, std::string_view file, std::string code, std::size_t before,
                      Diagnostics& diagnostics);

/// Size, UTF-8 and NUL checks; false, with one diagnostic, if the text must not be parsed.
[[nodiscard]] bool check_text(std::string_view text, std::string_view file, const ReadLimits& limits,
                              Diagnostics& diagnostics);

}  // namespace kmm::value
