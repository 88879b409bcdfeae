// SPDX-License-Identifier: Apache-2.0
// What kubeadm reads before it changes anything, beside its own ConfigMap. Private to this room.
#pragma once

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// FAIL with what kubeadm of a version on the way ends at: ConfigMap kube-proxy, marks of the Pods of API servers and
/// etcd, and with CheckInput::nodes the files with the kubelet's flags. OK if it reads all that was seen.
[[nodiscard]] Finding kubeadm_reads(const CheckInput& input);

/// Versions that control planes get on the way, in order; the target alone where the way is not known. None without a
/// target.
[[nodiscard]] std::vector<Version> versions_on_way(const CheckInput& input);

}  // namespace kmm::kubernetes
