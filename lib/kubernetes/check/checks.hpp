// SPDX-License-Identifier: Apache-2.0
// Running the checks on what was observed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

struct CheckResult {
    std::string id;
    Outcome outcome = Outcome::skip;
    std::string detail;   ///< what was found, all offenders by name
    std::string fix;      ///< what to do, "" unless it fails or warns
    bool ignored = false; ///< it failed and --ignore-checks names it: `outcome` is warn
};

/// Every check of check_list(), or with no target those of health, in its order. Each id of `ignored` must be of a
/// check that is ignorable. With `only` those of its ids.
[[nodiscard]] std::vector<CheckResult> run_checks(const CheckInput& input, const std::vector<std::string>& ignored,
                                                  std::span<const std::string_view> only = {});
/// Ids of those about applications, which are made again before each step of a way.
[[nodiscard]] std::span<const std::string_view> application_checks() noexcept;

/// Checks in --ignore-checks: ids with commas between. Errors: usage "bad-value" for ids that are unknown or never
/// ignored.
[[nodiscard]] std::vector<std::string> parse_ignored(const std::vector<std::string>& options);

}  // namespace kmm::kubernetes
