// SPDX-License-Identifier: Apache-2.0
// Texts that steps of recipes share. Internal to this room.
#pragma once

#include <string>

#include "base/text.hpp"
#include "upgrade/drive_recipe/own_objects.hpp"

namespace kmm::drive {

/// What a removal left, as the end of a message; empty if it left nothing.
[[nodiscard]] inline std::string stays_text(const Removed& removed) {
    return removed.stays.empty() ? "" : "; left as they are: " + base::join(removed.stays, "; ");
}

}  // namespace kmm::drive
