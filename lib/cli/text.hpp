// SPDX-License-Identifier: Apache-2.0
// Layout of text for a terminal: widths, cutting and wrapping by code points.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kmm::cli {

/// Columns of `text`: code points, with terminal escape sequences (CSI) counting nothing. Invalid UTF-8 counts a
/// column a byte.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

/// True if every byte of `text` is a printable ASCII character, and so one column.
[[nodiscard]] bool is_plain(std::string_view text) noexcept;

/// At most `width` columns of `text`; when something is lost the last column is "…". Escape sequences are kept
/// whole, including those after the cut, so that a colour is always switched off again. Never splits a code point.
[[nodiscard]] std::string cut(std::string_view text, std::size_t width);

/// `text` followed by blanks up to `width` columns.
[[nodiscard]] std::string pad(std::string_view text, std::size_t width);

/// Breaks at blanks so that no line, with `indent` blanks before it, is wider than `width`; a longer word gets a line
/// of its own. A line feed in `text` starts a new line, two make an empty line, and a line that begins with a blank is
/// kept as it is. Every line ends with a line feed; "" gives "".
[[nodiscard]] std::string wrap(std::string_view text, std::size_t width = 80, std::size_t indent = 0);

/// `text` with the word NODE for each place where it names `node` as a word of its own ("node-1" is not in "node-10"),
/// and in names that were generated for it: "status-node-1-x-b7k2p" becomes "status-NODE-x-…". Texts of several nodes
/// that are then equal say the same.
[[nodiscard]] std::string without_node(std::string_view text, std::string_view node);

}  // namespace kmm::cli
