// SPDX-License-Identifier: Apache-2.0
// The documents that kmm-plan prints as JSON and YAML: Plan, Why, Validation.
#pragma once

#include <vector>

#include "kmm-plan/source.hpp"
#include "plan/plan.hpp"
#include "plan/why.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// One element of entries[]: node, kernel, bootID, namespace, module, version, mapping, image, action, reason, message,
/// config. Absent parts are left out.
[[nodiscard]] value::Node entry_node(const plan::Entry& entry);
[[nodiscard]] value::Node diagnostics_node(const Diagnostics& diagnostics);
/// Kind Plan: the plan file.
[[nodiscard]] value::Node plan_node(const Source& source, const plan::Plan& plan, const plan::Options& options);
/// Kind Why.
[[nodiscard]] value::Node why_node(const plan::Why& why);
/// Kind Validation.
[[nodiscard]] value::Node validation_node(const Source& source);

/// The text of a tree in one of the machine formats json, yaml and jsonl (one line).
[[nodiscard]] std::string machine_text(const value::Node& node, const std::string& output);

}  // namespace kmm::tool_plan
