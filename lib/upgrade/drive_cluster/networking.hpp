// SPDX-License-Identifier: Apache-2.0
// The networking of a cluster in the middle of its upgrade: manifests of the administrator, applied and waited for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/live/cluster.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::drive {

/// The objects of DIRECTORY/VERSION, with or without its v: files *.yaml, *.yml and *.json in the order of their
/// names, lists taken apart. ${KUBERNETES_VERSION} and ${FROM_VERSION} are replaced, $${ by ${. Errors: not_found
/// "networking-not-found", also where there is no object; from_diagnostics with every fault, of which
/// "unknown-variable" is for any other ${NAME}, "bad-object" for an object without apiVersion, kind or name, and
/// "duplicate-object" for one that is there twice and differs.
[[nodiscard]] std::vector<value::Document> read_networking(const std::string& directory, const std::string& version,
                                                           const std::string& from);

class Networking {
public:
    virtual ~Networking() = default;
    /// Applies the manifests of `subject.networking`, waits for their rollouts and for those that operators begin, and
    /// has NetworkCanary try the network if the subject names an image; what was done and what was not tried, for
    /// people. Can be repeated. Errors: those of OperatorRollouts and of NetworkCanary; those of the reader and of the
    /// API server; unhealthy "not-verified" names what is not ready at `deadline`. Throws Leave.
    [[nodiscard]] virtual std::string apply(const upgrade::Header& run, const upgrade::kubernetes::Subject& subject,
                                            const Deadline& deadline, const std::function<bool()>& interrupted) = 0;
    /// Removes the Pods of NetworkCanary that a process has left which was killed. Errors: those of
    /// NetworkCanary::remove. Throws Leave.
    virtual void remove_canary(const Deadline& deadline) = 0;
};

/// That of an API server; of a directory cluster one that is never to be asked: start refuses --networking there.
/// `cluster` must outlive it. `say` is told what takes long.
[[nodiscard]] std::unique_ptr<Networking> networking_of(cluster::Cluster& cluster, sys::Clock& clock, Say say);

}  // namespace kmm::drive
