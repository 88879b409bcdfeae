// SPDX-License-Identifier: Apache-2.0
// What a worker Pod's status says of the worker in it. Internal to this room.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "cluster/seam/runner.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// True once the worker does not run and will not run again: its container has terminated (a kubelet says so seconds
/// before it says so of the Pod), or the phase is Succeeded or Failed.
[[nodiscard]] bool is_pod_over(const value::Node& pod);
/// True while it is certain that no container of the Pod has been started: none is in the status but as waiting.
[[nodiscard]] bool is_pod_unstarted(const value::Node& pod);
/// True while the node's kubelet is making the container: it has seen the Pod and pulls the image, or mounts.
[[nodiscard]] bool is_pod_starting(const value::Node& pod);
/// "NAMESPACE/NAME".
[[nodiscard]] std::string pod_title(const value::Node& pod);
/// Where the Pod stands, for messages: "Pending (ContainerCreating: text)", "Running".
[[nodiscard]] std::string pod_situation(const value::Node& pod);

/// Follows one worker Pod from its creation on.
class PodOutcome {
public:
    /// Takes the Pod as it is now; the reply once the end is known, else nullopt.
    ///   completed   the worker has ended: its document (null if it left none) and exit code; or it cannot be started
    ///               (image, configuration, admission by the kubelet): a document of kind Error, code
    ///               worker-not-started;
    ///   unknown     the worker, or all that is known of it, was killed: evicted, the node shut down or lost, deadline
    ///   over.
    /// A first failed pull is not yet the end: the kubelet tries again.
    [[nodiscard]] std::optional<WorkerReply> take(const value::Node& pod);

private:
    std::string pull_failure_;  ///< what the first failed pull said: the message of a back-off may be empty of it
};


}  // namespace kmm::cluster
