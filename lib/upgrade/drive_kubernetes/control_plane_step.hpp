// SPDX-License-Identifier: Apache-2.0
// The step that brings the control plane of a node to another version, and what stands before kubeadm may run.
#pragma once

#include <string>

#include "upgrade/drive_kubernetes/node_tools.hpp"

namespace kmm::drive {

/// Thread safe for different nodes. `tools` outlives it.
class ControlPlaneStep {
public:
    explicit ControlPlaneStep(NodeTools& tools) : tools_(tools) {}
    /// Brings the control plane of the node, which is `seen`, to the target of the run and proves it. Errors: those of
    /// require_backup, NodeAgent::step and NodeTools::prove_control_plane. Throws Leave.
    [[nodiscard]] Done upgrade(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    /// What of the control plane on the node, which was upgraded, is not as that left it; "" for nothing.
    [[nodiscard]] std::string lost(const std::string& name, const NodeSight& seen);
    /// Puts the manifests of the control plane back if some are missing or damaged, and waits for its Pods.
    void repair_manifests(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    /// Check backup-valid: what the way back needs is whole; `fix` is the hint if it is not. Errors: checks_failed
    /// "checks-failed"; those of NodeAgent::step. Throws Leave.
    void require_backup(const std::string& name, const std::string& fix, const Deadline& deadline);

private:
    /// Waits until the API server of a control plane, which is `seen`, is ready, as kubeadm needs it: after a reboot it
    /// starts. Where that takes too long kubeadm may be what repairs it. Errors: those of NodeAgent::facts. Throws
    /// Leave.
    void await_server(const std::string& name, NodeSight seen, const Deadline& deadline);

    NodeTools& tools_;
};

}  // namespace kmm::drive
