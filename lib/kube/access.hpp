// SPDX-License-Identifier: Apache-2.0
// What we may do, and the RBAC rules that are missing.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "kube/kubeconfig.hpp"

namespace kmm::kube {

class Client;

/// One right, as SelfSubjectAccessReview asks for it.
struct Rule {
    std::string verb, group, resource, subresource;
    std::string namespace_;  ///< "" for every namespace, or a kind of the whole cluster
    std::string name;        ///< "" for any object
    friend bool operator==(const Rule&, const Rule&) = default;
    friend auto operator<=>(const Rule&, const Rule&) = default;
};

/// Those of `rules` that the server does not allow us, in order. Errors: as Client.
[[nodiscard]] std::vector<Rule> missing_rules(Client& client, const std::vector<Rule>& rules);

/// The list "rules:" of a Role: verbs of the same resource together, sorted. YAML.
[[nodiscard]] std::string rule_yaml(const std::vector<Rule>& rules);

/// Complete manifests that grant `rules`: a ClusterRole for those of the whole cluster, a Role for each namespace, and
/// their bindings to `subject`. Ready for kubectl apply.
struct Subject {
    std::string kind;        ///< "User", "Group" or "ServiceAccount"
    std::string name;
    std::string namespace_;  ///< of a ServiceAccount
};
[[nodiscard]] std::string rbac_yaml(const std::vector<Rule>& rules, const std::string& role_name,
                                    const Subject& subject);

/// Who the server takes us for (SelfSubjectReview): "system:serviceaccount:NS:NAME" becomes a ServiceAccount. A User
/// named "USER" when the server does not say.
[[nodiscard]] Subject whoami(Client& client);

/// no_permission "forbidden" with the manifests for `missing` as hint. Their names begin with `role_name` and are
/// others for other rights, so that applying them takes no right away from anybody.
[[nodiscard]] Error missing_error(Client& client, const std::vector<Rule>& missing, const std::string& role_name);

/// What to do where the API server takes us for nobody, or for a user that it does not know though nothing was sent; ""
/// if there is no more to say than that.
[[nodiscard]] std::string anonymous_hint(const Connection& connection);
inline constexpr std::string_view k_anonymous = "system:anonymous";

}  // namespace kmm::kube
