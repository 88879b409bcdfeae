// SPDX-License-Identifier: Apache-2.0
// What kubeadm writes into the manifests of a control plane, as far as objects show it.
#pragma once

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// FAIL with flags that decide on the data of the cluster (where etcd is, how it is encrypted, ranges of addresses, who
/// issues tokens) and that kubeadm writes from kubeadm-config in another way than they run. OK if there are none that
/// objects show, also where --patches may bring them back.
[[nodiscard]] Finding kubeadm_writes(const CheckInput& input);

/// FAIL if the API server refuses Service kube-dns as kubeadm writes it, which it does once the first control plane is
/// upgraded; OK if nothing shows that.
[[nodiscard]] Finding dns_service_written(const CheckInput& input);

}  // namespace kmm::kubernetes
