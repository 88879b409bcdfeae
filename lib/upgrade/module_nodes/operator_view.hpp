// SPDX-License-Identifier: Apache-2.0
// One node of a Module as KMM's operator sees it, and which of its guards it waits for. Pure. Facts: KMM 4.2, 5, 8.1.
#pragma once

#include <optional>
#include <string>

#include "api/types.hpp"
#include "plan/kmm/version_labels.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/module_nodes/worker.hpp"

namespace kmm::drive {

/// What the objects say about one Module on one node.
struct OperatorView {
    std::string ns, name;                  ///< of the Module
    NodeView node;
    api::ScheduleKey key = api::ScheduleKey::schedule_pod;  ///< of the cluster's KMM
    plan::VersionLabels labels;
    std::optional<api::Pod> worker_pod;    ///< the operator's for this Module
    std::string module_version;            ///< of the Module now, "" if it is gone or has none
    bool plugin_missing = false;           ///< the Module has a device plugin that is not ready on the node
    bool dra_missing = false;              ///< likewise its DRA driver

    /// The labels as they are once the administrator's one says `version`, "" for none.
    [[nodiscard]] const plan::LabelRow& row(const std::string& version) const;
    /// What status.modules says of the node's present boot. Never `moving`.
    [[nodiscard]] LiveModule live() const;
};

/// Errors: not_found "node-not-found".
[[nodiscard]] OperatorView operator_view(const api::Objects& objects, const std::string& node, const std::string& ns,
                                         const std::string& name);

/// What is waited for: that nothing of another version is left on the node, or that `version` runs there.
enum class OperatorGoal { others_gone, loaded };

/// What stands between a node and a goal.
struct Awaited {
    std::string text;  ///< "KMM to unload v1 (...)", goes on from "waits for"
    std::string hint;  ///< where to look if it does not come
    bool on_plugin_pods = false;  ///< it is Pods of DaemonSets that have to leave the node
};

/// The first thing that is still missing, in the order of KMM's flow (facts: KMM 8.2); nullopt once the goal is
/// reached. `version` "" is for no version at all; it is reached by others_gone. Not for dead label states.
[[nodiscard]] std::optional<Awaited> awaited(const OperatorView& view, const std::string& version, OperatorGoal goal);

/// What is wrong with labels that KMM never leaves, once the administrator's says `version`: checks_failed
/// "version-labels-stuck" with the command that mends them as hint; nullopt for any other labels. Deleting the schedule
/// label leads out of each of them.
[[nodiscard]] std::optional<Error> dead_labels(const OperatorView& view, const std::string& version);

}  // namespace kmm::drive
