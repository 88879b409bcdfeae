// SPDX-License-Identifier: Apache-2.0
// Processes of the node itself, not of its containers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kubeadm/node.hpp"

namespace kmm::kubeadm {

/// Pids of processes with this name (comm), ascending, that root runs in the mount namespace of pid 1: a container's
/// process of the same name is not the node's. Errors: from_errno if /proc cannot be read, or not well enough to tell
/// (not root).
[[nodiscard]] std::vector<std::int64_t> node_processes(const Place& place, const std::string& name);

/// Errors: locked "kubeadm-running" if kubeadm runs that no job of this tool has started. Two of them race.
void require_no_kubeadm(const Place& place);

}  // namespace kmm::kubeadm
