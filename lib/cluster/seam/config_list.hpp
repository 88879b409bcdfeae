// SPDX-License-Identifier: Apache-2.0
// The lists spec.modules and status.modules of a NodeModulesConfig as trees: entries of others stay as they are.
// For the stores of this wing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// The label `key` of an object.
[[nodiscard]] std::optional<std::string> label_of(const value::Node& root, std::string_view key);

/// A label's value for messages: "'v1'" or "no label".
[[nodiscard]] std::string shown_label(const std::optional<std::string>& value);

/// The list at `root`.PART.modules with the entry of (ns, name) replaced, added or removed; nullopt for "as it is".
[[nodiscard]] std::optional<value::Node> changed_list(const value::Node& root, std::string_view part,
                                                      const std::string& ns, const std::string& name,
                                                      const std::optional<api::NodeModule>& wanted);

/// True if `root`.PART.modules has an entry of (ns, name).
[[nodiscard]] bool has_entry(const value::Node& root, std::string_view part, const std::string& ns,
                             const std::string& name);

/// Labels module-configured and module-in-use as KMM keeps them: what has to change for the entries being in spec and
/// status or not.
[[nodiscard]] std::vector<std::pair<std::string, std::optional<std::string>>> config_label_changes(
    const value::Node& root, const std::string& ns, const std::string& name, bool in_spec, bool in_status);

}  // namespace kmm::cluster
