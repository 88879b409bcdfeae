// SPDX-License-Identifier: Apache-2.0
// Selectors that lose the Pods they are written for: a copy for a kernel has its own name as label app.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "recipe/plan/render.hpp"

namespace kmm::recipe::plan {

/// A warning for each Service, PodDisruptionBudget, NetworkPolicy and PodMonitor of `objects` that selects Pods by a
/// label app which they had before they became copies. `renamed`: that label, and the workload that had it.
void note_lost_selectors(const std::vector<RecipeObject>& objects, const std::map<std::string, std::string>& renamed,
                         const std::function<void(Diagnostic)>& notice);

}  // namespace kmm::recipe::plan
