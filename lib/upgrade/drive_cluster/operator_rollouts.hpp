// SPDX-License-Identifier: Apache-2.0
// What operators make of manifests that were applied: workloads that stand in no manifest.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/deadline.hpp"
#include "value/node.hpp"

namespace kmm::drive {

/// Whether kinds of the API group are not those of Kubernetes itself.
[[nodiscard]] bool is_custom_group(std::string_view group);

/// What the status of a custom resource says against it, "" if nothing: a generation that its controller has not seen,
/// Degraded, Stalled, Reconciling, not Ready, not Available; Progressing where there is Degraded too, as operators of
/// clusters have it.
[[nodiscard]] std::string custom_problem(const value::Node& object);

/// DaemonSets and Deployments whose owner is of a group that a set of manifests brings: by a
/// CustomResourceDefinition, or by an object of it. An operator changes them some time after the set was applied.
class OperatorRollouts {
public:
    /// The references must outlive it.
    OperatorRollouts(kube::Client& client, sys::Clock& clock) : client_(client), clock_(clock) {}

    /// Objects of a set, with the name under which the server has each.
    using Applied = std::vector<std::pair<kube::Resource, kube::Key>>;
    /// Waits until the custom resources of the set have nothing against them, and all workloads of its groups are
    /// rolled out and have not changed for 30 s. Says which they are, for people; "" if there is nothing to wait for.
    /// `documents`: the set. Errors: unhealthy "not-verified" with what is not ready at `deadline`; those of the API
    /// server, but for a user who may not list workloads: that is said. Throws Leave.
    [[nodiscard]] std::string await(const std::vector<value::Document>& documents, const Applied& applied,
                                    const Deadline& deadline, const std::function<bool()>& interrupted,
                                    const Say& say);

private:
    [[nodiscard]] std::vector<value::Node> workloads_of(const std::set<std::string>& groups);

    kube::Client& client_;
    sys::Clock& clock_;
};

}  // namespace kmm::drive
