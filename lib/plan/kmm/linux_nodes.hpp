// SPDX-License-Identifier: Apache-2.0
// Which nodes can have kernel modules.
#pragma once

#include "api/types.hpp"

namespace kmm::plan {

/// By the label that every kubelet sets; without it, it does.
[[nodiscard]] bool runs_linux(const api::Node& node);

}  // namespace kmm::plan
