// SPDX-License-Identifier: Apache-2.0
// kmm-worker kubernetes on a node: steps that outlive the connection, repeated until there is an answer.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/runner.hpp"
#include "cluster/worker_answer.hpp"
#include "kubernetes/version.hpp"
#include "upgrade/drive/deadline.hpp"

namespace kmm::drive {

/// What a node says of itself, of its document KubernetesNodeFacts. What it could not read is absent.
struct NodeSight {
    std::optional<std::string> node;      ///< the name that its kubelet has a certificate for
    std::string boot_id;
    bool is_control_plane = false;        ///< has the manifest of an API server, or of another static Pod of kubeadm
    std::optional<bool> are_manifests_whole;
    std::optional<kubernetes::Version>
        control_plane;  ///< the lowest of its manifests of Kubernetes; nullopt on workers and where one is not whole
    std::optional<kubernetes::Version> kubelet;        ///< that runs
    value::Node document;
};

/// From the document of `kubernetes facts -o json`.
[[nodiscard]] NodeSight read_sight(value::Node document);

/// Thread safe for different nodes. The references outlive it.
class NodeAgent {
public:
    /// Told of connections that were lost, and of what is waited for; `node` and text.
    using Teller = std::function<void(const std::string& node, const std::string& text)>;
    NodeAgent(cluster::NodeRunner& runner, sys::Clock& clock, std::function<bool()> interrupted, Teller tell)
        : runner_(runner), clock_(clock), interrupted_(std::move(interrupted)), tell_(std::move(tell)) {}

    /// Asks until there is an answer. Errors: those of the worker; unavailable "node-unreachable" once `deadline` has
    /// passed. Throws Leave.
    [[nodiscard]] NodeSight facts(const std::string& node, const Deadline& deadline);
    /// Asks once.
    [[nodiscard]] cluster::Reply<value::Node> facts_once(const std::string& node, std::chrono::milliseconds timeout);
    /// Carries out `kubernetes WORDS` and returns its document KubernetesNodeStep. A job that an earlier call has begun
    /// is waited for; one that a reboot has ended is begun again, three times in all. Errors: those of the worker;
    /// unavailable "node-unreachable"; timeout "step-timeout". Throws Leave.
    [[nodiscard]] value::Node step(const std::string& node, const std::vector<std::string>& words,
                                   const Deadline& deadline);

private:
    void pause(std::chrono::milliseconds& wait);

    cluster::NodeRunner& runner_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    Teller tell_;
};

}  // namespace kmm::drive
