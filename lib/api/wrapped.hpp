// SPDX-License-Identifier: Apache-2.0
// Objects of KMM inside objects of other kinds.
#pragma once

#include <vector>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// Appends the objects of KMM that `holder`, an object of another kind, has anywhere among its values: manifests of a
/// ManifestWork, object templates of a policy, resources of a SyncSet. What a policy forbids is none of them, nor is
/// what only names an object, without metadata.
void find_wrapped(const value::Document& document, const value::Node& holder, std::vector<WrappedObject>& wrapped);

}  // namespace kmm::api
