// SPDX-License-Identifier: Apache-2.0
// What keys of YAML mappings mean to Kubernetes' readers. Used by yaml_reader.cpp alone.
#pragma once

#include <string>
#include <vector>

#include "value/node.hpp"

namespace kmm::value {

/// The key that kubectl makes of a number with a fraction or an exponent: Go's shortest text of a float32. `text` is
/// such a number. Source: sigs.k8s.io/yaml, convertToJSONableObject.
[[nodiscard]] std::string float_key(const std::string& text);

/// Of members with equal keys the last one takes the place of the first. O(n).
void keep_last(std::vector<Member>& members);

}  // namespace kmm::value
