// SPDX-License-Identifier: Apache-2.0
// Which nodes run Linux: kernel modules and containers with drivers are for no others.
#pragma once

#include <string_view>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// The label of the operating system, which every kubelet sets on its Node.
inline constexpr std::string_view k_label_os = "kubernetes.io/os";

/// Whether the label says linux; true without the label.
[[nodiscard]] bool runs_linux(const Node& node);

/// The same for a Node as it is written. Without the label, status.nodeInfo.operatingSystem decides if it is there.
[[nodiscard]] bool runs_linux(const value::Node& node);

}  // namespace kmm::api
