// SPDX-License-Identifier: Apache-2.0
// The plan of a fleet, whole. Pure: data in, data out, sorted, byte-stable.
#pragma once

#include "api/types.hpp"
#include "plan/decide/plan.hpp"

namespace kmm::plan {

/// The plan over everything in `objects`. Tables: facts KMM 4.1, 4.2.
[[nodiscard]] Plan make_plan(const api::Objects& objects, const Options& options);

}  // namespace kmm::plan
