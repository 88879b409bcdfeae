// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module_nodes/linux_nodes.hpp"

namespace kmm::drive {

bool runs_linux(const api::Node& node) {
    const auto system = node.meta.labels.find("kubernetes.io/os");
    return system == node.meta.labels.end() || system->second == "linux";
}

}  // namespace kmm::drive
