// SPDX-License-Identifier: Apache-2.0
// A control plane is rebooted only while the others serve: etcd without a majority of its members stops the cluster.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/types.hpp"
#include "api/workload.hpp"

namespace kmm::drive {

[[nodiscard]] bool is_control_plane(const api::Node& node);

/// Pods of a node.
using PodsOf = std::function<std::vector<api::WorkloadPod>(const std::string& node)>;

/// Why `name` must not be rebooted now: too few of the other control planes would be left for a majority; of two, the
/// other one. One that is not Ready, or has a static Pod that is not (where `pods` is given), does not count. "" for
/// nothing, and for a node that is no control plane. Errors: those of `pods`, which is asked once for each other one.
[[nodiscard]] std::string quorum_problem(const std::vector<api::Node>& nodes, const std::string& name,
                                         const PodsOf& pods);

}  // namespace kmm::drive
