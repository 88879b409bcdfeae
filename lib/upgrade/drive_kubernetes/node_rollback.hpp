// SPDX-License-Identifier: Apache-2.0
// The way back of one node: its kubelet, then the files of its control plane from the backup that was made before
// anything changed; with the first control plane also kubeadm-config, as the record has it.
#pragma once

#include <string>
#include <vector>

#include "upgrade/drive_kubernetes/control_plane_step.hpp"
#include "upgrade/drive_kubernetes/node_tools.hpp"

namespace kmm::drive {

/// Thread safe for different nodes. The references outlive it.
class NodeRollback {
public:
    NodeRollback(NodeTools& tools, ControlPlaneStep& control_plane) : tools_(tools), control_plane_(control_plane) {}
    /// Before `nodes` go back: each can. Errors: checks_failed "etcd-differs" where a control plane would need the data
    /// of an older etcd, "kubelet-newer" where a node that stays as it is would have a kubelet of a newer minor than
    /// the API server of one that goes back; those of NodeTools::await_job. Throws Leave.
    void require_way_back(const std::vector<std::string>& nodes);
    /// Brings the node, which is `found`, back and proves it. Errors: checks_failed "etcd-differs", "backup-not-found";
    /// those of ControlPlaneStep::require_backup, NodeAgent::step and NodeTools. Throws Leave.
    [[nodiscard]] Done roll_back(const std::string& name, const NodeSight& found, const Deadline& deadline);

private:
    void require_old_kubelets(const std::vector<std::string>& nodes) const;
    /// Before the API server of `name` goes back to a lower minor: kubelets of other control planes, which are still to
    /// go back, may talk to it and must not be newer. Errors: those of NodeAgent::step; "not-verified". Throws Leave.
    void bring_back_other_kubelets(const std::string& name, const kubernetes::Version& control_plane,
                                   const Deadline& deadline);
    /// Writes kubeadm-config as it was before the run, and reads it again; what was done, for people, "" for nothing.
    [[nodiscard]] std::string roll_back_configuration(const upgrade::kubernetes::Node& node, const Deadline& deadline);

    NodeTools& tools_;
    ControlPlaneStep& control_plane_;
};

}  // namespace kmm::drive
