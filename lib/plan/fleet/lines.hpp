// SPDX-License-Identifier: Apache-2.0
// The plan line by line, for fleets whose lines are more than should be held at once.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>

#include "plan/decide/plan.hpp"

namespace kmm::plan {

constexpr std::size_t k_own_entry = std::numeric_limits<std::size_t>::max();

/// One line. Nodes that are alike for a Module, but for their names and boot ids, share what was decided.
struct Line {
    const api::Node& node;
    const Entry& entry;   ///< of a shared entry `node` and `boot_id` are another node's; valid during the call
    std::size_t shared;   ///< number of the shared entry, counted from 0; k_own_entry if it is the line's own
    const std::shared_ptr<const Entry>* kept = nullptr;  ///< of a shared entry: keeps it longer than the call

    /// The entry with the node's own name and boot id.
    [[nodiscard]] Entry own() const;
};
using LineSink = std::function<void(const Line&)>;

/// Calls `sink` for every entry of the plan in its order: by node, namespace and module. Returns the plan's
/// diagnostics. O(nodes * Modules) lines; a decision is made once for nodes that are alike: same kernel and readiness,
/// selected or not, the same taint in the way, the same labels and entries of the Module, no worker Pods.
Diagnostics visit_plan(const api::Objects& objects, const Options& options, const LineSink& sink);

}  // namespace kmm::plan
