// SPDX-License-Identifier: Apache-2.0
// MachineConfigPools of OpenShift: groups of nodes that its machine config operator updates, unless they are paused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/workload.hpp"
#include "kube/access.hpp"
#include "kube/client.hpp"
#include "selector/label_selector.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

struct MachinePool {
    std::string name;
    bool paused = false;
    std::string owner;  ///< annotation kmmtools.dev/paused-by, "" if no run has paused it, or others did so after it
    std::optional<std::int64_t> paused_since;  ///< unix seconds, of a paused pool, where managedFields tell
    std::int64_t machines = 0;                 ///< status.machineCount
    bool updating = false, degraded = false;   ///< status.conditions: its operator works on nodes, or cannot go on
    std::optional<selector::LabelSelector> selector;  ///< spec.nodeSelector; nullopt, for an empty one, selects no node
};

/// The certificate authority that signs what kubelets accept: a paused pool does not get a new one.
struct Signer {
    std::int64_t not_before = 0;  ///< unix seconds
};

/// The pools of a server. Where the kind is not served, there are none.
class MachinePools {
public:
    explicit MachinePools(kube::Client& client) : client_(client) {}
    /// By name. Errors: those of the API server.
    [[nodiscard]] std::vector<MachinePool> read();
    /// Pauses the pool for `owner`, in one write with the annotation. False, and nothing is written, for one that
    /// someone else has paused, or is gone.
    bool pause(const std::string& name, const std::string& owner);
    /// Ends the pause of `owner`. False for a pool that it has not paused, or that is gone: nothing is written; and for
    /// one that others have unpaused, or paused again: only the annotation goes.
    bool unpause(const std::string& name, const std::string& owner);
    /// The configuration that the operator has yet to bring to nodes of the pool: "rendered-worker-2"; "" for none.
    [[nodiscard]] std::string pending_configuration(const std::string& name);
    /// nullopt where there is none, or it cannot be read.
    [[nodiscard]] std::optional<Signer> signer();
    /// The rights that reading, or pausing, needs.
    [[nodiscard]] static std::vector<kube::Rule> rules();

private:
    kube::Client& client_;
};

/// The pool of a Node: of those that select it master first, then any but worker. nullptr if none does.
[[nodiscard]] const MachinePool* pool_of(const std::vector<MachinePool>& pools, const value::Node& node);

/// That a paused pool stays paused, for people: since when, and for a run of kmm-upgrade, which may be gone, its mark
/// and the command that unpauses the pool.
[[nodiscard]] std::string pause_text(const MachinePool& pool);

/// What a run beside the operator of a pool that is at work, or stuck, has to reckon with; "" otherwise.
[[nodiscard]] std::string activity_warning(const MachinePool& pool);
/// Why a pool should not be, or stay, paused, for people: on day 292 of a signer OpenShift makes a new one, and drops
/// the old one on day 365; nodes of a pool that was paused all the time lose the API server then. "" if there is time
/// enough: more than 30 days.
[[nodiscard]] std::string signer_warning(const MachinePool& pool, const Signer& signer, std::int64_t now);

}  // namespace kmm::cluster
