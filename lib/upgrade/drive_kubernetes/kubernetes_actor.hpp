// SPDX-License-Identifier: Apache-2.0
// The steps of the Kubernetes procedures: prepare, control plane, networking, cordon, drain, kubelet, validate,
// uncordon, rollback.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/seam/workloads.hpp"
#include "kubernetes/versions/observe.hpp"
#include "upgrade/actor_parts/emptier.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kubernetes/agent.hpp"
#include "upgrade/drive_kubernetes/cluster_view.hpp"
#include "upgrade/drive_kubernetes/networking.hpp"
#include "upgrade/drive_kubernetes/prune_node.hpp"
#include "upgrade/kubernetes/subject.hpp"

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
    /// Nodes that run another version than when they were done ("version-changed"), or are not Ready, or a control
    /// plane on them is not ("node-not-ready"), which is waited for for 2 minutes. Throws Leave.
    [[nodiscard]] std::vector<upgrade::Event> confirm() override;
    /// Errors: checks_failed "etcd-differs" where a control plane would need the data of an older etcd.
    void require_way_back(const std::vector<std::string>& nodes) override;
    [[nodiscard]] std::string release(const std::string& node) override;
    /// All Nodes are read at most every five seconds, however many nodes are begun in that time.
    [[nodiscard]] std::map<std::string, std::string> unavailable() override;

private:
    [[nodiscard]] Done act_once(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline);
    /// What unavailable() has read is out of date: that `node` is unavailable for that reason, which has ended.
    void forget_unavailable(const std::string& node, std::string_view reason);
    /// All of it is out of date.
    void forget_unavailable();
    /// The verb that pulls the images of the target, with those that kubeadm-config fixes.
    [[nodiscard]] std::vector<std::string> images_of(const std::string& name);
    [[nodiscard]] Done prepare(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    [[nodiscard]] Done control_plane(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    [[nodiscard]] Done kubelet(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    /// What of the control plane on the node, which was upgraded, is not as that left it; "" for nothing.
    [[nodiscard]] std::string lost_control_plane(const std::string& name, const NodeSight& seen);
    [[nodiscard]] Done validate(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    [[nodiscard]] Done uncordon(const std::string& name);
    [[nodiscard]] Done roll_back(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    /// Waits while a step, or kubeadm, changes the node, which is `seen`; how it is then. Errors: timeout
    /// "step-timeout"; those of NodeAgent::facts. Throws Leave.
    [[nodiscard]] NodeSight await_job(const std::string& name, NodeSight seen, const Deadline& deadline);
    /// Whether a worker has left the cluster: there is no Node of it, and it gives no answer.
    [[nodiscard]] bool is_gone(const std::string& name);
    /// Of a node that does not answer. Errors: not_found "node-gone" if there is no Node of that name.
    void require_present(const std::string& name);
    /// What to do about a control plane of which there is no Node.
    [[nodiscard]] static std::string hint_if_gone(const std::string& name);
    /// Before the API server of `name` goes back to a lower minor: kubelets of other control planes, which are still to
    /// go back, may talk to it and must not be newer. Errors: those of NodeAgent::step; "not-verified". Throws Leave.
    void bring_back_other_kubelets(const std::string& name, const kubernetes::Version& control_plane,
                                   const Deadline& deadline);
    /// Errors: checks_failed "kubelet-newer" where a node that stays as it is would have a kubelet of a newer minor
    /// than the API server of one of `nodes`, which go back.
    void require_old_kubelets(const std::vector<std::string>& nodes) const;
    /// Writes kubeadm-config as it was before the run, and reads it again; what was done, for people, "" for nothing.
    [[nodiscard]] std::string roll_back_configuration(const upgrade::kubernetes::Node& node, const Deadline& deadline);
    [[nodiscard]] Done upgrade_networking(const Deadline& deadline);

    /// Puts the manifests of the control plane back if some are missing or damaged, and waits for its Pods.
    void repair_manifests(const std::string& name, const NodeSight& seen, const Deadline& deadline);
    /// Check backup-valid: what the way back needs is whole. Errors: checks_failed "checks-failed"; those of
    /// NodeAgent::step. Throws Leave.
    void require_backup(const std::string& name, const std::string& fix, const Deadline& deadline);
    /// Waits until the API server of a control plane, which is `seen`, is ready, as kubeadm needs it: after a reboot it
    /// starts. Where that takes too long kubeadm may be what mends it. Errors: those of NodeAgent::facts. Throws Leave.
    void await_server(const std::string& name, NodeSight seen, const Deadline& deadline);
    /// Waits until the Node is Ready and says the version of its kubelet; after a restart also until it has renewed its
    /// Lease.
    void prove_kubelet(const std::string& name, const kubernetes::Version& version, bool was_restarted,
                       const Deadline& deadline);
    /// Waits until the control plane of the node runs `version` and is Ready.
    void prove_control_plane(const std::string& name, const kubernetes::Version& version, bool first,
                             const Deadline& deadline);
    /// Errors: unhealthy "version-changed" where the node itself says otherwise.
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
    /// Waits for as long as the run asks for, and looks at the node again. Errors: as require_versions; unhealthy
    /// "node-not-ready".
    void watch(const std::string& name, value::Node facts);

    [[nodiscard]] bool is_control_plane(const std::string& name) const {
        return upgrade::kubernetes::is_control_plane(recorder_.node(name));
    }
    [[nodiscard]] bool is_first(const std::string& name) const;
    /// `words` of the worker's command line with the options of steps that run kubeadm upgrade, with_switch among them.
    [[nodiscard]] std::vector<std::string> with_kubeadm(std::vector<std::string> words) const;
    /// `words` of the worker's command line with --switch and what belongs to it.
    [[nodiscard]] std::vector<std::string> with_switch(std::vector<std::string> words) const;
    /// Options of kubeadm that the person gave, as they are for this node.
    [[nodiscard]] std::vector<std::string> kubeadm_options(const std::string& name) const;
    /// The worker's command line that switches the kubelet of a node, without the options of with_switch.
    [[nodiscard]] std::vector<std::string> kubelet_words(const std::string& name,
                                                         const kubernetes::Version& version) const;
    /// What a step that went well has done: what the node says of itself now.
    [[nodiscard]] Done done_as_seen(const std::string& name, std::string message, const Deadline& deadline);
    /// What runs there, as facts: currentVersion, currentKnown, controlPlane, bootID.
    void set_current(const NodeSight& seen, value::Node& facts) const;
    void tell(const std::string& node, const std::string& text);
    [[nodiscard]] std::string backup_name() const;

    ClusterView& view_;
    Networking& networking_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    upgrade::kubernetes::Subject subject_;
    NodeAgent agent_;
    Emptier emptier_;
    NodePruner pruner_;
    std::mutex unavailable_mutex_;
    std::optional<std::map<std::string, std::string>> unavailable_;  ///< as last read
    std::chrono::milliseconds unavailable_since_{};                  ///< monotonic
};

}  // namespace kmm::drive
