// SPDX-License-Identifier: Apache-2.0
// What an upgrade of Kubernetes may have to do on an API server.
#pragma once

#include <vector>

#include "kube/access.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::drive {

/// The rights that a run of `subject` needs beside those of every run: the store's, a drain's, the Lease's and those of
/// worker Pods. What its manifests of networking need is not among them.
[[nodiscard]] std::vector<kube::Rule> subject_rules(const upgrade::kubernetes::Subject& subject);

/// All rights that an upgrade can need, however it is asked for: without worker Pods, manifests of networking, and
/// what only checks look at.
[[nodiscard]] std::vector<kube::Rule> upgrade_rules();

}  // namespace kmm::drive
