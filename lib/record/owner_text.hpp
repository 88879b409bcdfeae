// SPDX-License-Identifier: Apache-2.0
// The owner record as text of the lock file, and as the message of whoever finds the lock held.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "record/state_dir.hpp"

namespace kmm::record {

/// One line of JSON without a newline.
[[nodiscard]] std::string encode_owner(const Owner& owner);
/// nullopt for anything that is not such a line (blanks around it are fine).
[[nodiscard]] std::optional<Owner> parse_owner(std::string_view text);
/// The error "locked" (75) that names who, where, since when and what. pid 0 means that it is not known.
/// `file`: the lock, for the hint.
[[nodiscard]] Error locked_by(const Owner& owner, const std::string& directory, const std::string& file);

}  // namespace kmm::record
