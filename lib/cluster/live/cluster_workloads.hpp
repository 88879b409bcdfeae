// SPDX-License-Identifier: Apache-2.0
// What runs on the nodes of an API server, and of a directory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cluster/folder/directory_store.hpp"
#include "cluster/live/kube_store.hpp"
#include "cluster/seam/workloads.hpp"
#include "kube/access.hpp"
#include "kube/own_pod.hpp"

namespace kmm::cluster {

/// The rights of a drain beyond those of the store, for kube::missing_rules.
[[nodiscard]] std::vector<kube::Rule> drain_rules();

/// Those of an API server; `store` must outlive them. `own`: the Pod of this process, if it runs in one.
[[nodiscard]] std::unique_ptr<Workloads> workloads_of(KubeStore& store, std::optional<kube::OwnPod> own = std::nullopt);
/// Those of a directory, which must outlive them. It has neither kubelets nor controllers: a cordon is written into the
/// Node's file with the taint that a controller would add, and there is nothing to evict.
[[nodiscard]] std::unique_ptr<Workloads> workloads_of(DirectoryStore& store);

}  // namespace kmm::cluster
