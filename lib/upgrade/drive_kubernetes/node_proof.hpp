// SPDX-License-Identifier: Apache-2.0
// What the API server has to say before a step of a node counts as done: kubeadm's own success is not believed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kubernetes/inventory/inventory.hpp"
#include "kubernetes/versions/observe.hpp"
#include "kubernetes/versions/version.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/drive_cluster/cluster_view.hpp"

namespace kmm::drive {

/// What is not yet as it has to be, "" if nothing is: the Pods of the control plane on `node` run `version` and are
/// Ready, as etcd is, if it has a Pod there.
[[nodiscard]] std::string control_plane_problem(const kubernetes::Inventory& seen, const std::string& node,
                                                const kubernetes::Version& version);
/// The Node is there and Ready.
[[nodiscard]] std::string node_problem(const kubernetes::Inventory& seen, const std::string& node);
/// The Node is Ready, and where it is a control plane the Pods of that are.
[[nodiscard]] std::string readiness_problem(const kubernetes::NodeObject& node,
                                            const kubernetes::Observation& observed, bool is_control_plane);
/// The Node says that its kubelet has `version`.
[[nodiscard]] std::string kubelet_problem(const kubernetes::Inventory& seen, const std::string& node,
                                          const kubernetes::Version& version);
/// kubeadm-config names `version`: kubeadm upgrade node reads its target there.
[[nodiscard]] std::string configuration_problem(const kubernetes::Inventory& seen, const kubernetes::Version& version);
/// Every API server, controller manager and scheduler runs `version`, or a newer one.
[[nodiscard]] std::string older_control_planes(const kubernetes::Inventory& seen, const kubernetes::Version& version);

/// await_clear with the hint to describe `node`. Errors: unhealthy "not-verified" with the last problem once
/// `deadline` has passed; those of `problem`. Throws Leave.
void await_none(sys::Clock& clock, const Deadline& deadline, const std::function<bool()>& interrupted,
                const std::string& node, const std::function<std::string()>& problem);

}  // namespace kmm::drive
