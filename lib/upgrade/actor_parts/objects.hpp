// SPDX-License-Identifier: Apache-2.0
// Objects of any kind on an API server, and how their rollouts stand.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "upgrade/drive/deadline.hpp"
#include "value/node.hpp"

namespace kmm::drive {

/// "DaemonSet drivers/a".
[[nodiscard]] std::string object_text(const value::Node& object);

/// `object`, in namespace "default" where its kind is namespaced and it names none, and without one where its kind has
/// none.
[[nodiscard]] value::Node placed(value::Node object, const kube::Resource& resource);

/// That the controller of a workload has not seen it as it is, "" if its status is of the present generation.
[[nodiscard]] std::string controller_problem(const value::Node& object);

/// What the rollout of a DaemonSet, Deployment or StatefulSet still lacks, "" if it is complete. Other kinds have none.
[[nodiscard]] std::string rollout_problem(const value::Node& object);

/// Finds the kinds that objects name, and applies them. Thread safe.
class Objects {
public:
    explicit Objects(kube::Client& client) : client_(client) {}
    /// nullopt if the server does not serve the kind. Kinds that were found are remembered, others are asked for each
    /// time. Errors: those of the client.
    [[nodiscard]] std::optional<kube::Resource> resource_of(const value::Node& object);
    /// Server-side apply; returns the object as it is then. Errors: those of the client with the object as context.
    value::Node apply(const kube::Resource& resource, const value::Node& object, kube::Force force,
                      kube::DryRun dry_run = kube::DryRun::no);
    /// The object as the server has it.
    [[nodiscard]] std::optional<value::Node> find(const kube::Resource& resource, const value::Node& object);

private:
    kube::Client& client_;
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, kube::Resource> known_;  ///< by apiVersion and kind
};

/// Asks `problem` until it is "", with growing pauses. Errors: unhealthy "not-verified" with the last problem and
/// `hint` once `deadline` has passed; those of `problem`. Throws Leave.
void await_clear(sys::Clock& clock, const Deadline& deadline, const std::function<bool()>& interrupted,
                 const std::string& hint, const std::function<std::string()>& problem);

using Say = std::function<void(const std::string&)>;

/// `problem` for await_clear, which also has what it finds said after ten seconds, then every thirty, with the time
/// that is left. The references must outlive it.
[[nodiscard]] std::function<std::string()> spoken(const sys::Clock& clock, const Deadline& deadline, const Say& say,
                                                  std::function<std::string()> problem);

}  // namespace kmm::drive
