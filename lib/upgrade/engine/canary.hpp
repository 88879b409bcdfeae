// SPDX-License-Identifier: Apache-2.0
// The two walks of a procedure that stops after its first nodes: --canary.
#pragma once

#include <string>

#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade {

/// Names of the two stages: the first nodes, then all.
inline constexpr std::string_view k_stage_canary = "canary", k_stage_nodes = "nodes";

/// The nodes of `stage`, one of the two above. The first one is left out where --canary would not stop before any node.
/// O(nodes).
[[nodiscard]] Members canary_members(const Run& run, const Stage& stage);
/// How the nodes of the first stage ended, for people. O(nodes).
[[nodiscard]] std::string canary_note(const Run& run, const Stage& stage);

}  // namespace kmm::upgrade
