// SPDX-License-Identifier: Apache-2.0
// kmm-worker kubernetes on a node: steps that outlive the connection, repeated until there is an answer.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kubernetes/versions/version.hpp"
#include "upgrade/actor_parts/worker_steps.hpp"

namespace kmm::drive {

/// What a node says of itself, of its document KubernetesNodeFacts. What it could not read is absent.
struct NodeSight {
    std::optional<std::string> node;      ///< the name that its kubelet has a certificate for
    std::string boot_id;
    bool is_control_plane = false;        ///< has the manifest of an API server, or of another static Pod of kubeadm
    std::optional<bool> are_manifests_whole;
    std::optional<kubernetes::Version>
        control_plane;  ///< the lowest of its manifests of Kubernetes; nullopt on workers and where one is not whole
    std::vector<kubernetes::Version> manifests;        ///< versions of its whole manifests of Kubernetes, without etcd
    std::optional<kubernetes::Version> kubelet;        ///< that runs
    std::optional<kubernetes::Version> installed_kubelet;  ///< that runs after the next restart
    std::string etcd;                                  ///< version of its manifest, "" where it is none or not whole
    std::string server_problem;                        ///< why its API server is not ready; "" if it is, or unknown
    value::Node document;
};

/// From the document of `kubernetes facts -o json`.
[[nodiscard]] NodeSight read_sight(value::Node document);

/// What changes the node at this moment, a job of kmm-worker or what that has left running, for people; "" for nothing.
[[nodiscard]] std::string running_on(const NodeSight& sight);

/// The verbs kubernetes of kmm-worker. Thread safe for different nodes. The references outlive it.
class NodeAgent {
public:
    NodeAgent(cluster::NodeRunner& runner, sys::Clock& clock, std::function<bool()> interrupted,
              WorkerSteps::Teller tell, WorkerSteps::Unanswered unanswered = {});
    /// As WorkerSteps::facts.
    [[nodiscard]] NodeSight facts(const std::string& node, const Deadline& deadline) {
        return read_sight(steps_.facts(node, deadline));
    }
    /// As WorkerSteps::facts_once.
    [[nodiscard]] cluster::Reply<value::Node> facts_once(const std::string& node, std::chrono::milliseconds timeout,
                                                         const std::vector<std::string>& options = {}) {
        return steps_.facts_once(node, timeout, options);
    }
    /// As WorkerSteps::step.
    [[nodiscard]] value::Node step(const std::string& node, const std::vector<std::string>& words,
                                   const Deadline& deadline, const std::string& input = {},
                                   const std::function<void()>& before_again = {}) {
        return steps_.step(node, words, deadline, input, before_again);
    }
    /// As WorkerSteps::step_once.
    [[nodiscard]] cluster::Reply<value::Node> step_once(const std::string& node, const std::vector<std::string>& words,
                                                        std::chrono::milliseconds timeout) {
        return steps_.step_once(node, words, timeout);
    }
    /// As WorkerSteps::pause.
    void pause(std::chrono::milliseconds& wait) { steps_.pause(wait); }

private:
    WorkerSteps steps_;
};

}  // namespace kmm::drive
