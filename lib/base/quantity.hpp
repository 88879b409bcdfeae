// SPDX-License-Identifier: Apache-2.0
// Quantities of Kubernetes: 100m, 1.5Gi, 12e6.
#pragma once

#include <optional>
#include <string_view>

namespace kmm::base {

/// A quantity as the API server reads one: an optional sign, decimal digits with at most one point among them, then a
/// suffix of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e or E and a whole number. The value in units, rounded; nullopt
/// if it is none. Source: apimachinery pkg/api/resource, ParseQuantity.
[[nodiscard]] std::optional<double> parse_quantity(std::string_view text) noexcept;

}  // namespace kmm::base
