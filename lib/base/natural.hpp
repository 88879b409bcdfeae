// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kmm::base {

/// Less than, equal to or greater than 0, as `left` comes before `right`, is it, or comes after it. Runs of digits are
/// compared as numbers of any size, all else by bytes: "6.1.0-9" comes before "6.1.0-10". O(n).
[[nodiscard]] int compare_natural(std::string_view left, std::string_view right) noexcept;

}  // namespace kmm::base
