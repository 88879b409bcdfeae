// SPDX-License-Identifier: Apache-2.0
// Secrets and ConfigMaps that another program makes in the same cluster, of objects or settings of its own.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// Appends the Secrets that operators make of `holder`, an object of another kind: a SealedSecret, an ExternalSecret
/// and their like. Each has the keys that are known without asking anybody, with empty texts; without data none is.
/// `given_namespace` is that of objects that say none; what is in no namespace then is left out.
void find_made_secrets(const value::Document& document, const value::Node& holder,
                       std::optional<std::string_view> given_namespace, std::vector<WrappedObject>& made);

/// Whether an object in Objects::wrapped is a Secret or ConfigMap that is made in the same cluster, not an object of
/// KMM. With `is_template` its name is made, too: it gets a hash.
[[nodiscard]] bool is_made(const WrappedObject& object);

}  // namespace kmm::api
