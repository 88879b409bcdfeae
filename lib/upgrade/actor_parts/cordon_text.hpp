// SPDX-License-Identifier: Apache-2.0
// What people are told of cordons.
#pragma once

#include <string>

namespace kmm::drive {

/// That a node stays cordoned by `owner`, "" for one that left no name.
[[nodiscard]] std::string left_cordoned_text(const std::string& owner);

}  // namespace kmm::drive
