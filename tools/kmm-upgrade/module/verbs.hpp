// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kmm-upgrade/craft.hpp"

namespace kmm::tool_upgrade {

/// start module and apply; doctor, adopt and migrate.
[[nodiscard]] OwnVerbs module_verbs();

}  // namespace kmm::tool_upgrade
