// SPDX-License-Identifier: Apache-2.0
// Runs kmm-worker on nodes in worker Pods: no operator, no ssh.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/seam/runner.hpp"
#include "kube/access.hpp"
#include "kube/client.hpp"
#include "render/worker_task.hpp"

namespace kmm::cluster {

struct PodRunnerOptions {
    std::string namespace_;  ///< where the Pods are made: of the Module, or another one that has its pull Secret under
                             ///< the same name
    std::string module;           ///< metadata.name of the Module
    std::string image;            ///< of kmm-worker
    std::string service_account;  ///< of the Module's worker Pods, "" for the default one
    std::string run;              ///< lineage of the upgrade; a label value
    std::function<void(const std::string&)> warn =
        {};                             ///< gets what is left behind, if set; called by whoever calls run()
    std::string module_namespace = {};  ///< of the Module, if the Pods are made elsewhere
    bool has_apparmor_field = true;     ///< WorkerTask::has_apparmor_field
};

/// Each call is one Pod of one container, whose termination message is the result, or says that it is in the log. The
/// Pod is deleted when its result was read.
///
/// There is never more than one worker at work on a node: before the first call of a node, and after any that ended
/// badly, Pods that an earlier process left there are looked for. What asks only is deleted and waited for until it is
/// gone; a load or unload that is still under way is waited for, not killed; its result is not taken, since a step that
/// was cut off begins with a look at the node. Pods of another run are waited for and never touched, unless they have
/// ended and bear the very name that is needed. Those that only read the node (render::is_worker_reading) are waited
/// for on a node that is ready, for half of the time that there is, and deleted once they have ended, or are twice as
/// old as they may become; then the worker is begun beside them.
///
/// How calls end: PodOutcome::take; a Pod that vanished, or of which nothing was heard until the timeout though it was
/// started, is `unknown`; one that no kubelet has started until the timeout is `unreachable`. What the API server
/// refuses (rights, admission, a namespace that is missing) is a result of kind Error. A node that is Ready and pulls
/// the worker's image has four minutes more for a call that only asks; where the Node says that nothing is heard of its
/// kubelet, and it has started no such Pod within 15 s, the call ends then. Waits by watches.
///
/// When the client's stop_waiting says so, no worker is begun and none is waited for: "interrupted" is thrown, after a
/// Pod that only asks or has not begun was deleted; a load or unload goes on.
class PodRunner final : public NodeRunner {
public:
    /// Nothing is sent. `client` must outlive it.
    PodRunner(kube::Client& client, PodRunnerOptions options) : client_(client), options_(std::move(options)) {}
    [[nodiscard]] WorkerReply run(const WorkerCall& call) override;
    [[nodiscard]] std::string describe() const override { return "self"; }

private:
    struct Obstacle {
        std::string text;  ///< why no worker may be started now
        std::string hint;  ///< what to do if it stays in the way
    };
    [[nodiscard]] render::WorkerTask task_of(const WorkerCall& call) const;
    /// Makes sure that no other worker is on the node until `end` (monotonic); what is in the way otherwise.
    [[nodiscard]] bool can_be_ours(const value::Node& pod) const;
    [[nodiscard]] std::optional<Obstacle> clear_node(const render::WorkerTask& task, std::chrono::milliseconds end);
    /// Handles one Pod that is there; nullopt when it is no obstacle any more.
    [[nodiscard]] std::optional<Obstacle> clear_pod(const value::Node& pod, const std::string& wanted_name,
                                                    std::chrono::milliseconds end);
    /// Deletes a Pod of another run that only reads once it has ended; gives up after `patience`.
    void clear_reader(const value::Node& pod, std::chrono::milliseconds patience);
    /// Creates the Pod once the node is clear; the Pod as it was stored, or what the call ends with.
    [[nodiscard]] std::optional<WorkerReply> start(const render::WorkerTask& task, std::chrono::milliseconds end,
                                                   value::Node& created);
    [[nodiscard]] WorkerReply wait(const WorkerCall& call, const value::Node& created, std::chrono::milliseconds end);
    /// What is not as it should be with the node's condition Ready: "; node NAME ...", "" if it is ready. Errors: of
    /// kube::Client.
    [[nodiscard]] std::string node_trouble(const std::string& node);
    /// The Node says that nothing is heard of its kubelet. Errors: of kube::Client.
    [[nodiscard]] bool is_kubelet_silent(const std::string& node);
    /// `reply`, or the document of the Pod's log where it says that it is there; nothing if that cannot be read yet.
    [[nodiscard]] std::optional<WorkerReply> with_log(WorkerReply reply, const kube::Key& key);
    /// What a Pod that did not start in time says about itself and its node.
    [[nodiscard]] std::string why_unstarted(const std::string& node, const std::optional<value::Node>& pod);
    /// Deletes a Pod that is not needed any more. False, with a warning, if that was not possible: the next call of
    /// this node, or a resume, finds it.
    [[nodiscard]] bool take_away(const kube::Key& key, const std::string& uid);
    [[nodiscard]] bool is_clear(const std::string& node);
    void set_clear(const std::string& node, bool clear);

    kube::Client& client_;
    PodRunnerOptions options_;
    std::mutex mutex_;
    std::set<std::string> clear_nodes_;  ///< no worker of ours is on them, as we have seen to it
};

/// The rights that worker Pods in `ns` need, for kube::missing_rules.
[[nodiscard]] std::vector<kube::Rule> worker_pod_rules(const std::string& ns);
/// What verbs with long results need besides.
[[nodiscard]] kube::Rule worker_log_rule(const std::string& ns);

}  // namespace kmm::cluster
