// SPDX-License-Identifier: Apache-2.0
// Every code that kmm-upgrade alone can say, and what its doctor finds; kmm-plan explains those of documents and
// clusters.
#pragma once

#include <vector>

#include "base/code.hpp"

namespace kmm::tool_upgrade {

/// All of them, sorted. Made at the first call.
[[nodiscard]] const std::vector<Code>& codes();

}  // namespace kmm::tool_upgrade
