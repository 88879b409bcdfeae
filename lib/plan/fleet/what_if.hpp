// SPDX-License-Identifier: Apache-2.0
// Changes of nodes that are only imagined.
#pragma once

#include <optional>
#include <string>

#include "api/types.hpp"

namespace kmm::plan {

/// One imagined change, with the node it is about; without one it applies to all nodes.
struct NodeChange {
    std::optional<std::string> node;
    std::string text;
    bool says_all = false;  ///< "*" stands where a node's name would
};

/// Splits "NODE=REST", "NODE:REST" (REST with a ':') or "NODE" if NODE is the name of a node of `objects`, or "*" for
/// all; else all of `text` is the rest.
[[nodiscard]] NodeChange split_node(const api::Objects& objects, const std::string& text);

/// Refuses a change of all nodes whose first word can only be the name of a node (two '=' follow), or is very like one
/// and no key that `objects` know. Errors: not_found "node-not-found" with the nearest name.
void check_node_name(const api::Objects& objects, const NodeChange& change);

/// The nodes boot into `kernel`; "" keeps the one they run. Their boot ids become "what-if".
void reboot(api::Objects& objects, const std::optional<std::string>& node, const std::string& kernel);

/// `text` as kubectl takes it: KEY=VALUE, or KEY- to remove. False for a removal of what no node has. Errors: usage
/// "bad-label".
bool set_label(api::Objects& objects, const NodeChange& change);

/// `text` as kubectl takes it: KEY[=VALUE]:EFFECT, or KEY[:EFFECT]- to remove. False for a removal of what no node has.
/// Errors: usage "bad-taint".
bool set_taint(api::Objects& objects, const NodeChange& change);

}  // namespace kmm::plan
