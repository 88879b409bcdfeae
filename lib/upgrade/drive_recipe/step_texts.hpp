// SPDX-License-Identifier: Apache-2.0
// Texts that steps of recipes share. Internal to this room.
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive_recipe/own_objects.hpp"

namespace kmm::drive {

/// "1 object", "3 objects".
[[nodiscard]] inline std::string count_text(std::size_t number, const char* word) {
    return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
}

/// What a removal left, as the end of a message; empty if it left nothing.
[[nodiscard]] inline std::string stays_text(const Removed& removed) {
    return removed.stays.empty() ? "" : "; left as they are: " + base::join(removed.stays, "; ");
}

}  // namespace kmm::drive
