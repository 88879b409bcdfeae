// SPDX-License-Identifier: Apache-2.0
// What the steps of a Kubernetes upgrade on a node have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/seam/workloads.hpp"
#include "kubernetes/versions/version.hpp"
#include "upgrade/actor_parts/emptier.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive_cluster/cluster_view.hpp"
#include "upgrade/drive_kubernetes/agent.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::drive {

/// What all steps need. Thread safe for different nodes. The references outlive it.
struct NodeTools {
    ClusterView& view;
    Recorder& recorder;
    sys::Clock& clock;
    std::function<bool()> interrupted;
    upgrade::kubernetes::Subject subject;  ///< that of the recorder's run
    NodeAgent agent;                       ///< ends a wait for a node of which there is no Node: not_found "node-gone"
    Emptier emptier;

    NodeTools(ClusterView& view, cluster::Workloads& workloads, cluster::NodeRunner& runner, Recorder& recorder,
              sys::Clock& clock, std::function<bool()> interrupted);
    NodeTools(const NodeTools&) = delete;
    NodeTools& operator=(const NodeTools&) = delete;

    [[nodiscard]] upgrade::kubernetes::Node node(const std::string& name) const {
        return upgrade::kubernetes::read(recorder.node(name));
    }
    [[nodiscard]] bool is_control_plane(const std::string& name) const {
        return upgrade::kubernetes::is_control_plane(recorder.node(name));
    }
    /// Whether it is the control plane that is upgraded first.
    [[nodiscard]] bool is_first(const std::string& name) const;
    /// Versions that the run brings. Errors: io "state-damaged".
    [[nodiscard]] kubernetes::Version control_plane_target() const;
    [[nodiscard]] kubernetes::Version kubelet_target() const;

    /// `words` of the worker's command line with --switch and what belongs to it.
    [[nodiscard]] std::vector<std::string> with_switch(std::vector<std::string> words) const;
    /// The same with the options of steps that run kubeadm upgrade.
    [[nodiscard]] std::vector<std::string> with_kubeadm(std::vector<std::string> words) const;
    /// Options of kubeadm that the person gave, as they are for this node.
    [[nodiscard]] std::vector<std::string> kubeadm_options(const std::string& name) const;
    /// The worker's command line that switches the kubelet of a node, without the options of with_switch.
    [[nodiscard]] std::vector<std::string> kubelet_words(const std::string& name,
                                                         const kubernetes::Version& version) const;

    /// What runs there, as facts: currentVersion, currentKnown, controlPlane, etcdNow, bootID.
    void set_current(const NodeSight& seen, value::Node& facts) const;
    /// What a step that went well has done: what the node says of itself now.
    [[nodiscard]] Done done_as_seen(const std::string& name, std::string message, const Deadline& deadline);

    /// await_none of node_proof.hpp, about a node.
    void await(const std::string& name, const Deadline& deadline, const std::function<std::string()>& problem);
    /// Waits while a step, or kubeadm, changes the node, which is `seen`; how it is then. Errors: timeout
    /// "step-timeout"; those of NodeAgent::facts. Throws Leave.
    [[nodiscard]] NodeSight await_job(const std::string& name, NodeSight seen, const Deadline& deadline);
    /// Waits until the control plane of the node runs `version` and is Ready, and where it is the `first`, until
    /// kubeadm-config names that version. Errors: those of await.
    void prove_control_plane(const std::string& name, const kubernetes::Version& version, bool first,
                             const Deadline& deadline);
    /// Waits until the Node is Ready and says the version of its kubelet; after a restart also until it has renewed its
    /// Lease. Errors: those of await.
    void prove_kubelet(const std::string& name, const kubernetes::Version& version, bool was_restarted,
                       const Deadline& deadline);

    /// Whether a worker has left the cluster: there is no Node of it, and it gives no answer.
    [[nodiscard]] bool is_gone(const std::string& name);
    /// What to do about a control plane of which there is no Node.
    [[nodiscard]] static std::string hint_if_gone(const std::string& name);

private:
    /// Of a node that does not answer. Errors: not_found "node-gone" if there is no Node of that name.
    void require_present(const std::string& name);
};

/// What a step of kmm-worker says of itself in its document, for people.
[[nodiscard]] std::string message_of(const value::Node& document);
/// What to do about a kubeadm that has refused to begin on node `name`, as the hint of `error`; others stay as they
/// are.
void hint_at_preflight(Error& error, const std::string& name);

}  // namespace kmm::drive
