// SPDX-License-Identifier: Apache-2.0
// Everything that was found out about one node and one Module on the way to its plan line: what `why` explains and the
// renderers build on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/decide/passes.hpp"
#include "plan/decide/plan.hpp"
#include "plan/kmm/decision.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/kmm/version_labels.hpp"

namespace kmm::plan {

/// A node with its NodeModulesConfig and the Pods that run on it.
struct NodeView {
    const api::Node* node = nullptr;
    const api::NodeModulesConfig* config = nullptr;  ///< null if the node has none
    std::vector<const api::Pod*> pods = {};             ///< worker Pods only
    /// Pull, build and sign Pods, which belong to no node; nullptr if there are none. Shared by all views.
    std::shared_ptr<const std::vector<const api::Pod*>> image_pods = nullptr;
};

/// Entry of (ns, name) in spec.modules or status.modules; nullptr if absent. O(entries).
[[nodiscard]] const api::NodeModule* find_entry(const std::vector<api::NodeModule>& entries, std::string_view ns,
                                                std::string_view name);

/// The labels after all steps, with every guard given time to become true.
struct SettledLabels {
    VersionLabels labels;
    std::vector<LabelStep> steps;  ///< in order, without none and stuck
    bool stuck = false;
    bool worker_removed = false;   ///< W was deleted on the way
};

struct Verdict {
    Entry entry;
    std::string version;                 ///< the Module's
    bool selected = false;
    bool tolerated = false;
    api::Taint blocking;                 ///< the first taint that is not tolerated
    Resolution resolution = NoMapping{};
    api::ScheduleKey schedule_key = api::ScheduleKey::schedule_pod;
    VersionLabels labels_before;
    SettledLabels labels_after;          ///< with Options::next: unchanged
    const DecisionRow* row = nullptr;    ///< null if the table was not asked: no moduleLoader, Module being deleted
    UnloadPolicy policy = UnloadPolicy::always;
    bool image_missing = false;          ///< Options::missing_images has the image
    ImageState image_state;              ///< what KMM says about it
    std::string worker_pod;              ///< name of the module's worker Pod on the node, "" if none was read
    std::optional<api::NodeModule> observed_spec, observed_status;
    /// The entry of spec.modules as it will be: settled, or after the next pass.
    std::optional<api::NodeModule> wanted;
};

/// Judges one pair. `options` must be complete, else the key is schedule_pod. O(mappings + labels + entries + pods).
[[nodiscard]] Verdict judge(const NodeView& view, const Resolver& resolver, const Options& options);

/// All nodes with their NodeModulesConfigs and Pods, in the order of objects.nodes.
[[nodiscard]] std::vector<NodeView> views(const api::Objects& objects);

/// Calls `visit` for each node, in the order of objects.nodes, with its verdicts sorted by namespace and module, which
/// are `visit`'s to keep.
void judge_nodes(const api::Objects& objects, const Options& options,
                 const std::function<void(const NodeView&, std::vector<Verdict>&)>& visit);

/// All pairs of a node and a Module, sorted by node, namespace and module. Entries for Modules that are not among the
/// objects are not in here.
[[nodiscard]] std::vector<Verdict> judge_all(const api::Objects& objects, const Options& options);

}  // namespace kmm::plan
