// SPDX-License-Identifier: Apache-2.0
// The checks before an upgrade and of health, as data.
#pragma once

#include <span>
#include <string_view>

namespace kmm::kubernetes {

/// Whether a check that fails may be ignored with --ignore-checks.
enum class Weight {
    fatal,      ///< never
    ignorable,
    warning,    ///< it never fails
};

struct CheckInfo {
    std::string_view id;
    bool in_health;  ///< part of `health`
    Weight weight;
    std::string_view meaning;  ///< what it is that is checked, one phrase
    std::string_view fix;      ///< what to do if it fails
    /// Why objects of the API server cannot tell; "" if they can. Such a check is always skipped.
    std::string_view needs;
};

/// In the order in which they are reported.
[[nodiscard]] std::span<const CheckInfo> check_list() noexcept;

/// nullptr for an unknown id.
[[nodiscard]] const CheckInfo* find_check(std::string_view id) noexcept;

}  // namespace kmm::kubernetes
