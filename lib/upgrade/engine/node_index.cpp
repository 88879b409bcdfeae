// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/node_index.hpp"

#include "upgrade/engine/planner.hpp"

namespace kmm::upgrade {
namespace {

bool is_busy(const Run& run, const NodeRecord& node) {
    return is_active_node(run, node) && (run.options.failure_budget == 0 || !is_failed_node_state(node.state));
}

bool counts_as_under_way(const NodeRecord& node) {
    return (node.touched != 0 && !is_final_node_state(node.state)) || node.cordon == k_cordon_ours;
}

}  // namespace

NodeIndex::NodeIndex(const Run& run) {
    under_way_.reserve(run.nodes.size());
    for (std::size_t place = 0; place < run.nodes.size(); ++place) {
        places_.emplace(run.nodes[place].name, place);
        enter(run, place);
    }
}

std::optional<std::size_t> NodeIndex::place_of(std::string_view name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) return std::nullopt;
    return found->second;
}

void NodeIndex::leave(const Run& run, std::size_t place) noexcept {
    const auto& node = run.nodes[place];
    if (is_final_node_state(node.state)) --finals_;
    if (is_busy(run, node)) --busy_;
}

void NodeIndex::enter(const Run& run, std::size_t place) noexcept {
    const auto& node = run.nodes[place];
    if (is_final_node_state(node.state)) ++finals_;
    if (is_busy(run, node)) ++busy_;
    const auto at = std::lower_bound(under_way_.begin(), under_way_.end(), place);
    const bool is_there = at != under_way_.end() && *at == place;
    if (counts_as_under_way(node) && !is_there) under_way_.insert(at, place);
    if (!counts_as_under_way(node) && is_there) under_way_.erase(at);
    last_touched_ = std::max(last_touched_, node.touched);
    const auto is_begun = [&](const NodeRecord& other) {
        return other.touched != 0 || is_final_node_state(other.state);
    };
    while (begun_until_ < run.nodes.size() && is_begun(run.nodes[begun_until_])) ++begun_until_;
}

}  // namespace kmm::upgrade
