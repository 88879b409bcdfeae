// SPDX-License-Identifier: Apache-2.0
// The documents that kmm-plan prints as JSON and YAML: Plan, Why, Validation.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kmm-plan/source/source.hpp"
#include "plan/decide/plan.hpp"
#include "plan/fleet/why.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// One element of entries[]: node, kernel, bootID, namespace, module, version, mapping, image, action, reason, message,
/// config. Absent parts are left out.
[[nodiscard]] value::Node entry_node(const plan::Entry& entry);
[[nodiscard]] value::Node diagnostics_node(const Diagnostics& diagnostics);
/// {"Node": "sha256:…", ...}: for each kind that was read, the digest of its objects. It is that of one line for each
/// object, sorted: NAMESPACE/NAME, a blank, and the SHA-256 of its canonical JSON (api/canonical.hpp) in hexadecimal
/// digits. Files, their order and format do not count. O(size of what was read).
[[nodiscard]] value::Node digests_node(const api::Objects& objects);
/// All actions, in the order of summaries.
constexpr std::array k_actions{plan::Action::load,   plan::Action::keep,    plan::Action::reload,
                               plan::Action::unload, plan::Action::blocked, plan::Action::none};
/// Lines of a plan by action.
using ActionCounts = std::map<plan::Action, std::size_t>;

/// Kind Plan: the plan file, with an empty list `entries` for those of entry_node. `digests` are of what was read,
/// before anything was imagined; `counts` and `diagnostics` are the plan's.
[[nodiscard]] value::Node plan_node(const Source& source, value::Node digests, const ActionCounts& counts,
                                    const Diagnostics& diagnostics, const plan::Options& options);
/// `item` with a first member `cluster`.
[[nodiscard]] value::Node with_cluster(const std::string& cluster, value::Node item);
/// Plans of several clusters as one document of kind Plan: each finding begins with its `cluster`, as each entry is to,
/// `source` is a list `clusters`, the counts of `summary` are sums.
[[nodiscard]] value::Node joined_plan_node(const std::vector<std::pair<std::string, value::Node>>& plans);
/// Kind Why.
[[nodiscard]] value::Node why_node(const plan::Why& why);
/// Kind Validation.
[[nodiscard]] value::Node validation_node(const Source& source);

}  // namespace kmm::tool_plan
