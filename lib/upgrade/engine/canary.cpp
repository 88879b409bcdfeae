// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/canary.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kmm::upgrade {

Members canary_members(const Run& run, const Stage& stage) {
    Members members;
    const bool is_canary = stage.name == k_stage_canary;
    if (is_canary && (run.options.canary <= 0 || run.options.canary >= static_cast<std::int64_t>(run.nodes.size()))) {
        members.is_left_out = true;
        return members;
    }
    members.places.resize(is_canary ? static_cast<std::size_t>(run.options.canary) : run.nodes.size());
    for (std::size_t place = 0; place < members.places.size(); ++place) members.places[place] = place;
    if (!is_canary) members.failure_budget = run.options.failure_budget;
    return members;
}

std::string canary_note(const Run& run, const Stage& stage) {
    const auto places = canary_members(run, stage).places;
    const auto canaries = places.size();
    const auto first = canaries == 1 ? std::string("first node") : fmt::format("first {} nodes", canaries);
    const auto done = static_cast<std::size_t>(std::count_if(
        places.begin(), places.end(), [&](std::size_t place) { return run.nodes[place].state == k_node_done; }));
    if (done == canaries) return fmt::format("the {} {} done, as --canary asks", first, canaries == 1 ? "is" : "are");
    if (done == 0)
        return fmt::format("the {} {} skipped: no canary is done, resume continues with the others", first,
                           canaries == 1 ? "was" : "were");
    return fmt::format("{} of the {} {} done, {} skipped, as --canary asks", done, first, done == 1 ? "is" : "are",
                       canaries - done);
}

}  // namespace kmm::upgrade
