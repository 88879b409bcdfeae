// SPDX-License-Identifier: Apache-2.0
// The kinds that an upgrade without an operator reads and writes, where the server does not have them yet.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "kube/access.hpp"
#include "kube/client.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// The files of manifests/crd.
extern const std::string_view k_module_definition, k_node_modules_config_definition;

/// Those of Module and NodeModulesConfig that the server does not serve, in this order. Errors: those of kube::Client.
[[nodiscard]] std::vector<kube::Resource> lacking_kinds(kube::Client& client);

/// not_found "kmm-not-installed": `place`, as KubeStore::describe says it, has no such kind; the hint installs it.
[[nodiscard]] Error lacking_error(const std::string& place, const kube::Resource& kind);

/// The rights that create_definition needs for these kinds.
[[nodiscard]] std::vector<kube::Rule> definition_rules(const std::vector<kube::Resource>& kinds);

/// Looks whether `kinds`, none of which is served, may be created: `rights` and those of definition_rules are allowed,
/// no definition of the name is there in another version, and no NodeModulesConfig tells of Modules that a new, empty
/// kind Module would have lost. Changes nothing. Errors: not_found "kmm-not-installed", with the manifests of the
/// rights that are missing as hint; no_permission "forbidden" where only others are missing; not_found
/// "kmm-other-version", "modules-lost"; those of kube::Client.
void require_creatable(kube::Client& client, const std::string& place, const std::vector<kube::Resource>& kinds,
                       const std::vector<kube::Rule>& rights);

/// Creates the definition of `kind` as manifests/crd has it, unless one of that name is there, which stays as it is;
/// then waits until the server serves the kind. False: it was there. Errors: unavailable "kind-not-served" after
/// `patience`; those of kube::Client.
bool create_definition(kube::Client& client, const kube::Resource& kind,
                       std::chrono::milliseconds patience = std::chrono::seconds(30));

}  // namespace kmm::cluster
