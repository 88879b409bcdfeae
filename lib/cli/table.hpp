// SPDX-License-Identifier: Apache-2.0
// Tables, Property/Value lists and the live status area.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.hpp"

namespace kmm::cli {

/// Upper-case headers, two blanks between columns, no borders, no trailing blanks. Cells are escaped; width counts
/// code points. When `width` > 0 and the table is wider, the last column is cut with "…" (never below 8), then columns
/// are cut from the right; width 0 never cuts (used when stdout is no terminal).
[[nodiscard]] std::string format_table(const std::vector<std::string>& headers,
                                       const std::vector<std::vector<std::string>>& rows, std::size_t width);

/// The same of rows that are not kept: `rows` gives each one to its argument, in the same order whenever it is called,
/// which is twice. The text goes to `out` piece by piece.
void print_table(const std::vector<std::string>& headers,
                 const std::function<void(const std::function<void(const std::vector<std::string>&)>&)>& rows,
                 std::size_t width, const std::function<void(std::string_view)>& out);

/// The table whole where it fits in `width` columns, or `width` is 0. Else its last `below` columns stand below each
/// line, ": " between them, and as many more, each with its name, as it takes; "-" is left out. Nothing is cut.
[[nodiscard]] std::string folded_table(std::vector<std::string> headers, std::vector<std::vector<std::string>> rows,
                                       std::size_t below, std::size_t width);

/// Whether no line of `text` is wider than `width`.
[[nodiscard]] bool fits(std::string_view text, std::size_t width);
/// A table, its headers included, with `below[i]`, whole lines or "", after its line i.
[[nodiscard]] std::string interleaved(std::string_view table, const std::vector<std::string>& below);

/// "key   value" lines, keys padded to one column.
[[nodiscard]] std::string format_properties(const std::vector<std::pair<std::string, std::string>>& rows);

/// The console's live block for as long as this lives; at most one at a time.
class LiveArea {
public:
    explicit LiveArea(Console& console) : console_(console) {}
    ~LiveArea();
    LiveArea(const LiveArea&) = delete;
    LiveArea& operator=(const LiveArea&) = delete;
    /// As Console::draw.
    void draw(std::vector<std::string> lines);
    /// Removes the block, before a result is printed.
    void clear();

private:
    Console& console_;
    bool is_drawn_ = false;
};

}  // namespace kmm::cli
