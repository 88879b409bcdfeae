// SPDX-License-Identifier: Apache-2.0
// The steps of the Kubernetes procedures: prepare, control plane, networking, cordon, drain, kubelet, validate,
// uncordon, rollback.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/seam/workloads.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive_cluster/networking.hpp"
#include "upgrade/drive_kubernetes/control_plane_step.hpp"
#include "upgrade/drive_kubernetes/node_rollback.hpp"
#include "upgrade/drive_kubernetes/node_tools.hpp"
#include "upgrade/drive_kubernetes/node_validation.hpp"
#include "upgrade/drive_kubernetes/unavailable_nodes.hpp"

namespace kmm::drive {

/// Each step: gate, act by kmm-worker on the node, prove by what the node and the API server say. Thread safe for
/// different nodes. The references outlive it.
class KubernetesActor final : public Actor {
public:
    KubernetesActor(ClusterView& view, cluster::Workloads& workloads, Networking& networking,
                    cluster::NodeRunner& runner, Recorder& recorder, sys::Clock& clock,
                    std::function<bool()> interrupted);

    [[nodiscard]] Sight look(const upgrade::NodeStep& step, const Deadline& deadline) override;
    [[nodiscard]] value::Node intent(const upgrade::NodeStep& step) override;
    [[nodiscard]] Done act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) override;
    void explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) override;
    /// A worker that has left the cluster.
    [[nodiscard]] std::optional<Error> lost_for_good(const upgrade::NodeStep& step, const Error& error) override;
    [[nodiscard]] value::Node glance(const std::string& node) override;
    /// As NodeValidation::confirm.
    [[nodiscard]] std::vector<upgrade::Event> confirm() override { return validation_.confirm(); }
    /// As NodeRollback::require_way_back.
    void require_way_back(const std::vector<std::string>& nodes) override { rollback_.require_way_back(nodes); }
    [[nodiscard]] std::string release(const std::string& node) override;
    /// As UnavailableNodes::names.
    [[nodiscard]] std::map<std::string, std::string> unavailable() override { return unavailable_.names(); }

private:
    [[nodiscard]] Done act_once(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline);
    /// The verb that pulls the images of the target, with those that kubeadm-config fixes.
    [[nodiscard]] std::vector<std::string> images_of(const std::string& name);
    [[nodiscard]] Done prepare(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    [[nodiscard]] Done kubelet(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    [[nodiscard]] Done uncordon(const std::string& name);
    [[nodiscard]] Done upgrade_networking(const Deadline& deadline);
    [[nodiscard]] std::string backup_name() const;

    NodeTools tools_;
    Networking& networking_;
    ControlPlaneStep control_plane_;
    NodeValidation validation_;
    NodeRollback rollback_;
    UnavailableNodes unavailable_;
};

}  // namespace kmm::drive
