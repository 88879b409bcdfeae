// SPDX-License-Identifier: Apache-2.0
// Pods that try the network of a cluster: from node to node, and its DNS.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kube/access.hpp"
#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/deadline.hpp"

namespace kmm::drive {

/// What is tried with what.
struct CanaryRequest {
    std::string image;    ///< with sh, nc, nslookup and grep
    std::string lineage;  ///< of the run: in the names of the Pods, and in what they tell each other
    std::string domain;   ///< of the cluster, as "cluster.local"
    std::vector<std::string> left_out;  ///< nodes that get no Pod
};

/// Two Pods listen, on the first control plane that is Ready and on the last other node of Linux that is, or both on
/// the only node of the cluster; two more, on the same nodes, read from the listener of the other one what only it can
/// know, and ask the DNS of the cluster for Service default/kubernetes. Their exit codes and states are the proof.
class NetworkCanary {
public:
    /// `say` is told what it waits for.
    NetworkCanary(kube::Client& client, sys::Clock& clock, Say say)
        : client_(client), clock_(clock), say_(std::move(say)) {}
    /// What was tried, for people. Removes what an earlier call has left before, and its own Pods afterwards, however
    /// it ends. Errors: unhealthy "network-canary-failed" with what a Pod has said; those of the client. Throws Leave.
    [[nodiscard]] std::string run(const CanaryRequest& request, const Deadline& deadline,
                                  const std::function<bool()>& interrupted);
    /// Removes Pods of any run, and waits until they are gone, at most for `deadline`; those that their kubelets do not
    /// let go are removed without them. Errors: those of the client; unhealthy "not-verified". Throws Leave.
    void remove(const Deadline& deadline, const std::function<bool()>& interrupted);
    /// What `run` needs.
    [[nodiscard]] static std::vector<kube::Rule> rules();

private:
    /// What a Pod still lacks, "" if nothing; the string becomes why it will never have it, else stays "".
    using Judge = std::function<std::string(const value::Node&, std::string&)>;
    /// Makes `pods` and waits until `judge` finds nothing wrong with any of them; the Pods as they are then. Errors:
    /// "network-canary-failed" with the fault of each Pod.
    [[nodiscard]] std::vector<value::Node> make(const std::vector<value::Node>& pods, const Deadline& deadline,
                                                const std::function<bool()>& interrupted, const Judge& judge);
    /// Asks `problem` until it is ""; what it is at `deadline`, with words that say so.
    [[nodiscard]] std::string still_wrong(const Deadline& deadline, const std::function<bool()>& interrupted,
                                          const std::function<std::string()>& problem);
    /// In brackets the last warning about a Pod, else what was said last; "" if nothing, or if this user may not read
    /// it.
    [[nodiscard]] std::string last_event(const value::Node& pod);
    /// Waits until there are two nodes, or one that is the only one.
    [[nodiscard]] std::vector<std::string> choose_nodes(const CanaryRequest& request, const Deadline& deadline,
                                                        const std::function<bool()>& interrupted);
    [[nodiscard]] std::string try_network(const CanaryRequest& request, const Deadline& deadline,
                                          const std::function<bool()>& interrupted);

    kube::Client& client_;
    sys::Clock& clock_;
    Say say_;
};

}  // namespace kmm::drive
