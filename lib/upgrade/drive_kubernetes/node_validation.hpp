// SPDX-License-Identifier: Apache-2.0
// The last look at a node before it counts as done, the time for which it is watched, and the look at all nodes that
// are done, before the run says that all of them are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubernetes/versions/observe.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/node_tools.hpp"
#include "upgrade/drive_kubernetes/prune_node.hpp"

namespace kmm::drive {

/// Thread safe for different nodes. `tools` outlives it.
class NodeValidation {
public:
    explicit NodeValidation(NodeTools& tools)
        : tools_(tools), pruner_(tools.agent, tools.interrupted, teller(tools.recorder)) {}
    /// Errors: unhealthy "version-changed" where the node itself, which is `seen`, says another version than the run
    /// brought; those of the proofs, of the user's check and of watch. Throws Leave.
    [[nodiscard]] Done validate(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    /// Waits for as long as the run asks for, which is recorded with `facts`, and looks at the node again. Errors:
    /// unhealthy "version-changed", "node-not-ready". Throws Leave.
    void watch(const std::string& name, value::Node facts);
    /// Nodes that run another version than when they were done ("version-changed"), or are not Ready, or a control
    /// plane on them is not ("node-not-ready"), which is waited for for 2 minutes. Throws Leave.
    [[nodiscard]] std::vector<upgrade::Event> confirm();

private:
    void require_versions(const std::string& name, const NodeSight& seen) const;
    /// What confirm() finds with one look.
    [[nodiscard]] std::vector<upgrade::Event> find_changed();
    /// That kubeadm-config names another version than the control planes were brought to, as an event of the first one.
    [[nodiscard]] std::optional<upgrade::Event> find_changed_configuration();
    /// That a node which was done is changed.
    [[nodiscard]] upgrade::Event changed_event(const std::string& node, std::string message) const;
    /// Which other version than that of the run `object` or its control plane has, "" for none.
    [[nodiscard]] std::string other_version(const upgrade::NodeRecord& node, const kubernetes::Observation& observed,
                                            const kubernetes::NodeObject& object) const;

    NodeTools& tools_;
    NodePruner pruner_;
};

}  // namespace kmm::drive
