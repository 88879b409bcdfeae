// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/linux_nodes.hpp"

namespace kmm::plan {

bool runs_linux(const api::Node& node) {
    const auto system = node.meta.labels.find("kubernetes.io/os");
    return system == node.meta.labels.end() || system->second == "linux";
}

}  // namespace kmm::plan
