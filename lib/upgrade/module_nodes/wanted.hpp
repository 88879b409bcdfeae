// SPDX-License-Identifier: Apache-2.0
// Whether a Module is still to be installed.
#pragma once

#include <string>

#include "api/types.hpp"

namespace kmm::drive {

/// As require_wanted() of fleet.hpp, with a hint for a run that is under way: the step of `node` ends with it.
void require_still_wanted(const api::Module& module, const std::string& node);

}  // namespace kmm::drive
