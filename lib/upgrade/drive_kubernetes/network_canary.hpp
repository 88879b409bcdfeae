// SPDX-License-Identifier: Apache-2.0
// Pods that try the network of a cluster: from node to node, and its DNS.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kube/access.hpp"
#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "upgrade/drive/deadline.hpp"

namespace kmm::drive {

/// What is tried with what.
struct CanaryRequest {
    std::string image;    ///< with sh, nc, nslookup and grep
    std::string lineage;  ///< of the run: in the names of the Pods, and in what they tell each other
    std::string domain;   ///< of the cluster, as "cluster.local"
};

/// Two Pods listen, on the first control plane that is Ready and on the last other node that is, or both on the only
/// one; two more, on the same nodes, read from the listener of the other one what only it can know, and ask the DNS of
/// the cluster for Service default/kubernetes. Their exit codes and states are the proof.
class NetworkCanary {
public:
    NetworkCanary(kube::Client& client, sys::Clock& clock) : client_(client), clock_(clock) {}
    /// What was tried, for people. Removes what an earlier call has left before, and its own Pods afterwards, however
    /// it ends. Errors: unhealthy "network-canary-failed" with what a Pod has said; those of the client. Throws Leave.
    [[nodiscard]] std::string run(const CanaryRequest& request, const Deadline& deadline,
                                  const std::function<bool()>& interrupted);
    /// Removes Pods of any run, and waits until they are gone, at most for `deadline`. Errors: those of the client;
    /// unhealthy "not-verified". Throws Leave.
    void remove(const Deadline& deadline, const std::function<bool()>& interrupted);
    /// What `run` needs.
    [[nodiscard]] static std::vector<kube::Rule> rules();

private:
    /// Makes `pods` and waits until `problem` has none with any of them; the Pods as they are then.
    [[nodiscard]] std::vector<value::Node> make(const std::vector<value::Node>& pods, const Deadline& deadline,
                                                const std::function<bool()>& interrupted,
                                                const std::function<std::string(const value::Node&)>& problem);
    [[nodiscard]] std::vector<std::string> choose_nodes();
    [[nodiscard]] std::string try_network(const CanaryRequest& request, const Deadline& deadline,
                                          const std::function<bool()>& interrupted);

    kube::Client& client_;
    sys::Clock& clock_;
};

}  // namespace kmm::drive
