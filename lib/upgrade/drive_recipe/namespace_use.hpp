// SPDX-License-Identifier: Apache-2.0
// What a Namespace holds besides what Kubernetes puts into every one: it would be deleted with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/client.hpp"
#include "value/node.hpp"

namespace kmm::drive {

struct NamespaceUse {
    std::vector<std::string> objects;  ///< "ConfigMap base/settings", kind by kind; none that is being deleted
    std::vector<std::string> hidden;   ///< kinds of custom resources that the account may not list: "parts.x.test"
};

/// Workloads, configuration, volumes, Modules, releases and custom resources in the Namespace. Left out are the
/// ConfigMaps with certificates, the Secrets of ServiceAccounts, and but for Pods what has an owner. Errors: those of
/// the client; "forbidden" for kinds of Kubernetes itself.
[[nodiscard]] NamespaceUse use_of_namespace(kube::Client& client, const std::string& name);

/// The kind with the first version of its definition that the API server serves; nullopt for none.
[[nodiscard]] std::optional<kube::Resource> served_kind(const value::Node& definition);

}  // namespace kmm::drive
