// SPDX-License-Identifier: Apache-2.0
// Lines and columns of ascending offsets, counted once on the way. Internal to lib/value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "value/node.hpp"

namespace kmm::value {

/// How many LFs are in `text`, and the offset just behind the last one (0 if there is none).
struct LineCount {
    std::size_t lines = 0;
    std::size_t last_start = 0;
};
[[nodiscard]] LineCount count_lines(std::string_view text) noexcept;

/// A place that moves forward through a window of a text. Copy it to return to a place.
class MarkCursor {
public:
    MarkCursor() = default;
    /// The window begins at this place of the whole text.
    explicit MarkCursor(Mark start) noexcept
        : line_(start.line), line_start_(1 - static_cast<std::ptrdiff_t>(start.column)) {}
    /// The mark of `offset`, which must not be before an earlier one, in the window `text`.
    [[nodiscard]] Mark mark(std::string_view text, std::size_t offset) noexcept;
    /// The window now starts `count` bytes later; the cursor must not be before that place.
    void drop(std::size_t count) noexcept;

private:
    std::size_t at_ = 0;
    std::uint32_t line_ = 1;
    std::ptrdiff_t line_start_ = 0;  ///< negative if the line began before the window
};

}  // namespace kmm::value
