// SPDX-License-Identifier: Apache-2.0
// One module on one node, pass by pass: KMM's module reconciler, its NodeModulesConfig reconciler and its label
// controller look at what is there and do their next thing. The settled plan is the fixpoint of that. Facts:
// KMM 4.2, 5.1-5.4, 8.1.
#pragma once

#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "plan/kmm/decision.hpp"
#include "plan/kmm/node_tables.hpp"
#include "plan/kmm/version_labels.hpp"

namespace kmm::plan {

/// The annotation kmmtools.dev/unload-policy of a Module. KMM has no such thing: it always unloads.
enum class UnloadPolicy {
    always,     ///< as KMM: whenever the module is not wanted on the node
    on_delete,  ///< when the Module is deleted, and when a change of version or configuration replaces what is loaded
    never,      ///< what is loaded stays until the node reboots
};

/// The module's worker Pod on the node.
struct WorkerPod {
    PodState state = PodState::none;
    Phase phase = Phase::pending;
    const api::NodeModule* entry = nullptr;  ///< what a loader loads
    friend bool operator==(const WorkerPod&, const WorkerPod&) = default;
};

/// What changes from pass to pass. Pointers are into the observed objects or Circumstances::wanted.
struct PairState {
    VersionLabels labels;
    bool ready_label = false;                 ///< the node has `.ready` of the module
    const api::NodeModule* spec = nullptr;    ///< entry of spec.modules
    const api::NodeModule* status = nullptr;  ///< entry of status.modules
    bool this_boot = false;                   ///< status was written in this walk: the boot id is the node's
    WorkerPod pod;
    friend bool operator==(const PairState&, const PairState&) = default;
};

/// What does not change.
struct Circumstances {
    Eligibility eligibility = Eligibility::not_eligible;
    MappingState mapping = MappingState::none;
    const api::Node* node = nullptr;
    const api::NodeModule* wanted = nullptr;  ///< what the Module asks for; set if a mapping was found
    std::string_view version;                 ///< the Module's
    UnloadPolicy policy = UnloadPolicy::always;
    bool has_loader = true;
    bool deleting = false;
    bool image_missing = false;
    bool labels_walked = true;  ///< false: the label controller does not see the module's labels as such
    bool node_ready = true;     ///< condition Ready is True
};

/// The row of KMM's decision table; `configured`: spec has an entry, `worker_label`: the value of version-worker-pod.
[[nodiscard]] const DecisionRow& decision_row(const Circumstances& circumstances, Configured configured,
                                              std::string_view worker_label);

/// What one pass did.
struct Pass {
    const DecisionRow* decision = nullptr;  ///< null: the table was not asked
    bool image_held = false;                ///< the entry would have been written, but its image is missing
    bool policy_held = false;               ///< the unload policy kept something from being unloaded
    bool tolerations_held = false;          ///< the entry's own tolerations keep the reconciler off
    const SyncRow* sync = nullptr;
    const SpecRow* spec = nullptr;
    const OrphanRow* orphan = nullptr;
    LabelStep label = LabelStep::none;
    bool label_waits = false;  ///< the label's guard does not hold
    /// What the spec or orphan table did, nothing if neither was asked or the policy forbade it.
    PodStep step = PodStep::nothing;
};

/// One pass; a Pod that it makes is Pending. Every controller looks at the state as it was when the pass began, but the
/// NodeModulesConfig's reconciler sees the entry that was just written. Guards about other Pods hold.
Pass run_pass(PairState& state, const Circumstances& circumstances);

/// The end of all passes if every Pod succeeds.
struct Settling {
    PairState state;
    Pass last;
    /// The table row that made the first Pod; null if it was the other table's, or if there was none.
    const SpecRow* spec_cause = nullptr;
    const OrphanRow* orphan_cause = nullptr;
    bool loads = false, unloads = false, worker_removed = false;
    std::vector<LabelStep> label_steps;  ///< in order
};
/// Runs passes until nothing changes any more. A bug if that does not happen.
[[nodiscard]] Settling settle(PairState state, const Circumstances& circumstances);

}  // namespace kmm::plan
