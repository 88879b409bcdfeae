// SPDX-License-Identifier: Apache-2.0
// Checks of what objects of the cluster say, with what nodes have answered where they were asked.
#pragma once

#include <span>

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// Those of each checks_*.cpp of this room.
[[nodiscard]] std::span<const CheckRow> version_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> config_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> flag_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> object_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> order_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> drain_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> prerequisite_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> api_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> addon_checks() noexcept;

}  // namespace kmm::kubernetes
