// SPDX-License-Identifier: Apache-2.0
// Everything that was found out about one node and one Module on the way to its plan line: what `why` explains and the
// renderers build on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/decision.hpp"
#include "plan/plan.hpp"
#include "plan/version_labels.hpp"

namespace kmm::plan {

/// A node with its NodeModulesConfig.
struct NodeView {
    const api::Node* node = nullptr;
    const api::NodeModulesConfig* config = nullptr;  ///< null if the node has none
};

/// Entry of (ns, name) in spec.modules or status.modules; nullptr if absent. O(entries).
[[nodiscard]] const api::NodeModule* find_entry(const std::vector<api::NodeModule>& entries, std::string_view ns,
                                                std::string_view name);

struct Verdict {
    Entry entry;
    bool selected = false;
    bool tolerated = false;
    api::Taint blocking;                 ///< the first taint that is not tolerated
    Resolution resolution = NoMapping{};
    VersionLabels labels_before;
    SettledLabels labels_after;          ///< with Options::next: unchanged
    const DecisionRow* row = nullptr;    ///< null if the table was not asked: no moduleLoader, Module being deleted
    std::optional<api::NodeModule> observed_spec, observed_status;
    /// The entry of spec.modules as it will be: settled, or after the next pass.
    std::optional<api::NodeModule> wanted;
};

/// Judges one pair. O(mappings + labels + entries).
[[nodiscard]] Verdict judge(const NodeView& view, const Resolver& resolver, const Options& options);

/// All nodes with their NodeModulesConfigs, in the order of objects.nodes.
[[nodiscard]] std::vector<NodeView> views(const api::Objects& objects);

/// All pairs of a node and a Module, sorted by node, namespace and module. Entries for Modules that are not among the
/// objects are not in here.
[[nodiscard]] std::vector<Verdict> judge_all(const api::Objects& objects, const Options& options);

}  // namespace kmm::plan
