// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/make_plan.hpp"

#include "plan/fleet/lines.hpp"

namespace kmm::plan {

Plan make_plan(const api::Objects& objects, const Options& options) {
    Plan plan;
    plan.entries.reserve(objects.nodes.size() * objects.modules.size());
    plan.diagnostics = visit_plan(objects, options, [&](const Line& line) { plan.entries.push_back(line.own()); });
    return plan;
}

}  // namespace kmm::plan
