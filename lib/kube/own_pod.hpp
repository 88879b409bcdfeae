// SPDX-License-Identifier: Apache-2.0
// Which Pod this process runs in.
#pragma once

#include <optional>
#include <string>

#include "kube/kubeconfig.hpp"

namespace kmm::kube {

/// A Pod by what it is known of itself; "" for what is not known.
struct OwnPod {
    std::string namespace_, name;
    std::string uid;   ///< tells Pods of different clusters apart, too
    std::string node;  ///< where it runs; API servers from 1.30 say so
    friend bool operator==(const OwnPod&, const OwnPod&) = default;
};

/// The Pod that the token of the service account is bound to, as the token itself says. Where it says nothing (one of a
/// Secret, which is bound to no Pod): the namespace of the account and `host_name`, which Kubernetes makes of the Pod's
/// name. nullopt outside of a Pod, and in one without a service account. Nothing is sent. Errors: from_errno for a
/// token that cannot be read. Source: Kubernetes, "Managing Service Accounts", schema of bound tokens.
[[nodiscard]] std::optional<OwnPod> own_pod(const ConfigRequest& request, const std::string& host_name);

}  // namespace kmm::kube
