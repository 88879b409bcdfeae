// SPDX-License-Identifier: Apache-2.0
// What KMM's hub makes of a ManagedClusterModule. Source: KMM manifestwork.go.
#pragma once

#include "api/types.hpp"

namespace kmm::plan {

/// The Module that clusters get: named like `hub`, in its spokeNamespace. Build, sign and mappings are those of `hub`.
[[nodiscard]] api::Module module_of(const api::ManagedClusterModule& hub);

}  // namespace kmm::plan
