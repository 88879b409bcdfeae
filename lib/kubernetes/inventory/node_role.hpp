// SPDX-License-Identifier: Apache-2.0
// Which Nodes are control planes, as kubeadm labels them.
#pragma once

#include <string_view>

namespace kmm::kubernetes {

inline constexpr std::string_view k_label_control_plane = "node-role.kubernetes.io/control-plane";
inline constexpr std::string_view k_label_master = "node-role.kubernetes.io/master";  ///< kubeadm below 1.24, OpenShift

/// `has`: whether the Node has a label of that key.
template <typename Has>
[[nodiscard]] bool is_control_plane(const Has& has) {
    return has(k_label_control_plane) || has(k_label_master);
}

}  // namespace kmm::kubernetes
