// SPDX-License-Identifier: Apache-2.0
// The types that fields of configurations have, which kubeadm does not read otherwise. Private to this room.
#pragma once

#include <string>
#include <vector>

#include "value/node.hpp"

namespace kmm::kubernetes {

/// "a mapping", "the integer '30'".
[[nodiscard]] std::string found_there(const value::Node& node);

/// Fields of another type than theirs, as "maxPods: expected an integer, found the string '110'". Unknown fields are
/// passed over, as kubeadm does.
[[nodiscard]] std::vector<std::string> wrong_cluster_fields(const value::Node& cluster_configuration);
[[nodiscard]] std::vector<std::string> wrong_kubelet_fields(const value::Node& kubelet_configuration);
[[nodiscard]] std::vector<std::string> wrong_proxy_fields(const value::Node& proxy_configuration);

}  // namespace kmm::kubernetes
