// SPDX-License-Identifier: Apache-2.0
// Checks of what nodes have answered. Internal to this room.
#pragma once

#include <span>

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// They need CheckInput::nodes.
[[nodiscard]] std::span<const CheckRow> node_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> etcd_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> service_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> placing_checks() noexcept;

}  // namespace kmm::kubernetes
