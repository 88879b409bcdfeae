// SPDX-License-Identifier: Apache-2.0
#include "plan/lines.hpp"

namespace kmm::plan {

std::string_view to_string(Action action) noexcept {
    switch (action) {
        case Action::load: return "load";
        case Action::keep: return "keep";
        case Action::reload: return "reload";
        case Action::unload: return "unload";
        case Action::blocked: return "blocked";
        case Action::none: return "none";
    }
    return "none";
}

Plan make_plan(const api::Objects& objects, const Options& options) {
    Plan plan;
    plan.entries.reserve(objects.nodes.size() * objects.modules.size());
    plan.diagnostics = visit_plan(objects, options, [&](const Line& line) { plan.entries.push_back(line.own()); });
    return plan;
}

}  // namespace kmm::plan
