// SPDX-License-Identifier: Apache-2.0
// What kubeadm writes into the manifests of a control plane, as far as objects show it.
#pragma once

#include "kubernetes/finding/finding.hpp"

namespace kmm::kubernetes {

/// FAIL with flags that decide on the data of the cluster (where etcd is, how it is encrypted, ranges of addresses, who
/// issues tokens, with which keys) and that kubeadm writes from kubeadm-config in another way than they run. OK if
/// there are none that objects show, also where --patches may bring them back.
[[nodiscard]] Finding kubeadm_writes(const CheckInput& input);

/// The same of changes that kubeadm of the running version does not make: the order of issuers, where kubeadm of a
/// version on the way has another rule for it.
[[nodiscard]] Finding kubeadm_reorders(const CheckInput& input);

/// FAIL if the API server refuses Service kube-dns as kubeadm writes it, which it does once all control planes are
/// upgraded; SKIP if it is not known which Service there is; OK if nothing shows that.
[[nodiscard]] Finding dns_service_written(const CheckInput& input);

}  // namespace kmm::kubernetes
