// SPDX-License-Identifier: Apache-2.0
// Characters that nobody sees.
#pragma once

#include <cstdint>
#include <string_view>

namespace kmm::base {

/// The code point of one character: `sequence` is valid UTF-8, of 1 to 4 bytes.
[[nodiscard]] std::uint32_t code_point(std::string_view sequence) noexcept;

/// Characters beyond ASCII that nobody sees, that turn the direction of what stands around them, or that are none:
/// blanks other than U+0020, zero width, bidirectional controls, tags, noncharacters.
[[nodiscard]] bool is_invisible(std::uint32_t point) noexcept;

}  // namespace kmm::base
