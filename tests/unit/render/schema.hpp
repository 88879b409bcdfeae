// SPDX-License-Identifier: Apache-2.0
// Field names and types of the objects that render makes, as Kubernetes 1.34's OpenAPI schemas and KMM's CRDs have
// them.
#pragma once

#include <string>
#include <vector>

#include "value/node.hpp"

namespace schema {

/// What is wrong with `object`, as "spec.containers[0].imag: unknown field"; empty if it is what the API server's
/// strict field validation takes. Unknown kinds are faults.
[[nodiscard]] std::vector<std::string> faults(const kmm::value::Node& object);

}  // namespace schema
