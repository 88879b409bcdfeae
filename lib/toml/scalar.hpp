// SPDX-License-Identifier: Apache-2.0
// Values of TOML that are one word, and characters that are written by number. Used inside this room only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "value/node.hpp"

namespace kmm::toml {

/// What a word without quotes writes: true, false, an integer of 64 bits in one of four bases, a float, or a date or
/// time; these are texts here, and so are inf and nan. nullopt for anything else.
[[nodiscard]] std::optional<value::Node> read_word(std::string_view word);

/// Whether `word` is a date alone, which a time may follow behind a blank.
[[nodiscard]] bool is_date(std::string_view word) noexcept;

/// Appends the UTF-8 form of a code point; false if there is no such character.
[[nodiscard]] bool append_character(std::string& text, std::uint32_t code);

}  // namespace kmm::toml
