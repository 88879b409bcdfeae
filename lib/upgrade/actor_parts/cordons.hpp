// SPDX-License-Identifier: Apache-2.0
// The cordons of a run: only its own are lifted.
#pragma once

#include <functional>
#include <string>

#include "cluster/seam/workloads.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"

namespace kmm::drive {

/// Thread safe for different nodes. The references outlive it.
class Cordons {
public:
    Cordons(cluster::Workloads& workloads, const Recorder& recorder) : workloads_(workloads), recorder_(recorder) {}
    /// Facts of an intent to cordon: the cordon counts as the run's until it is known whose it is.
    [[nodiscard]] static value::Node intent();
    /// Cordons a node, but for one that somebody else has cordoned. Errors: those of cluster::Workloads::cordon.
    [[nodiscard]] Done cordon(const std::string& node);
    /// Lifts the cordon if it is the run's; what came of it, for people: "uncordoned", "" if the run has none there.
    /// Errors: those of cluster::Workloads::uncordon, but for a node that is gone.
    [[nodiscard]] std::string lift(const std::string& node);
    /// Lifts the cordon of the run. `watch` is called then, with the facts that it is lifted, and looks at the node for
    /// as long as the run asks for; `what` says what the node has. Errors: those of lift and `watch`.
    [[nodiscard]] Done uncordon(const std::string& node, const std::function<void(value::Node facts)>& watch,
                                const std::function<std::string()>& what);
    /// Completes the record of a node that could not be cordoned or emptied: nothing was changed there, so that it goes
    /// back to work. That the cordon was lifted is said if `is_told`, which is asked before and may throw as the store
    /// does. Never fails.
    void give_back(const std::string& node, const std::function<bool()>& is_told, upgrade::Event& failed);
    /// True if the record says that the run has cordoned the node.
    [[nodiscard]] bool is_ours(const std::string& node) const {
        return recorder_.node(node).cordon == upgrade::k_cordon_ours;
    }

private:
    cluster::Workloads& workloads_;
    const Recorder& recorder_;
};

}  // namespace kmm::drive
