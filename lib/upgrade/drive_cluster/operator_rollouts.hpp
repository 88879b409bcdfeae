// SPDX-License-Identifier: Apache-2.0
// What operators make of manifests that were applied: workloads that stand in no manifest.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/access.hpp"
#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/deadline.hpp"
#include "value/node.hpp"

namespace kmm::drive {

/// Whether kinds of the API group are not those of Kubernetes itself.
[[nodiscard]] bool is_custom_group(std::string_view group);

/// What the status of a custom resource says against it, "" if nothing: an observedGeneration, its own or that of Ready
/// or Available, before its generation; Degraded, Stalled, Reconciling, not Ready, not Available; Progressing where
/// there is Degraded too, as operators of clusters have it. Without an observedGeneration the conditions alone are
/// judged. One that has been what it is since before `began`, in seconds since 1970, does not count.
[[nodiscard]] std::string custom_problem(const value::Node& object, std::int64_t began = 0);

/// DaemonSets and Deployments whose owner is of a group that a set of manifests brings: by a
/// CustomResourceDefinition, or by an object of it. An operator changes them some time after the set was applied.
class OperatorRollouts {
public:
    /// The references must outlive it.
    OperatorRollouts(kube::Client& client, sys::Clock& clock) : client_(client), clock_(clock) {}

    /// Objects of a set, with the name under which the server has each.
    using Applied = std::vector<std::pair<kube::Resource, kube::Key>>;
    /// Waits until the custom resources of the set have nothing against them, and all workloads of its groups are
    /// rolled out and have not changed for 30 s. Says which they are, and that others were not awaited, for people; ""
    /// if the set brings no group.
    /// `documents`: the set. `began`: of the run, in seconds since 1970: what is against a custom resource since five
    /// minutes before is not waited for, nor is a rollout that is paused or made by hand; it is said. Errors: unhealthy
    /// "not-verified" with what is not ready 30 s after `deadline`; those of the API server, but for a user who may not
    /// list workloads: that is said. Throws Leave.
    [[nodiscard]] std::string await(const std::vector<value::Document>& documents, const Applied& applied,
                                    std::int64_t began, const Deadline& deadline,
                                    const std::function<bool()>& interrupted, const Say& say);
    /// The rights that await() needs for `documents`, beside reading them: none where they bring no kind of their own.
    [[nodiscard]] static std::vector<kube::Rule> rules(const std::vector<value::Document>& documents);

    /// Without these rights nobody could say whether operators have rolled out. Errors: kube::missing_error; those of
    /// the API server.
    static void require_rights(kube::Client& client, const std::vector<value::Document>& documents);

private:
    /// Of kinds that this user may not list there are none: their names are put into unlisted_.
    [[nodiscard]] std::vector<value::Node> workloads_of(const std::set<std::string>& groups);

    kube::Client& client_;
    sys::Clock& clock_;
    std::set<std::string> unlisted_;
};

}  // namespace kmm::drive
