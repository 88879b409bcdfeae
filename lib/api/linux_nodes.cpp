// SPDX-License-Identifier: Apache-2.0
#include "api/linux_nodes.hpp"

#include <string>

namespace kmm::api {

namespace {

constexpr std::string_view k_linux = "linux";

}  // namespace

bool runs_linux(const Node& node) {
    const auto system = node.meta.labels.find(std::string(k_label_os));
    return system == node.meta.labels.end() || system->second == k_linux;
}

bool runs_linux(const value::Node& node) {
    const value::Node* labels = node.find_path({"metadata", "labels"});
    const value::Node* label = labels == nullptr ? nullptr : labels->find(k_label_os);
    const std::string system = node.get_string({"status", "nodeInfo", "operatingSystem"});
    return label == nullptr ? system.empty() || system == k_linux : label->text() == k_linux;
}

}  // namespace kmm::api
