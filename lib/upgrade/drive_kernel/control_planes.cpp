// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kernel/control_planes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/inventory/node_role.hpp"

namespace kmm::drive {
namespace {

/// What keeps a control plane from serving, "" for nothing.
std::string fault_of(const api::Node& node, const PodsOf& pods) {
    if (node.ready && *node.ready != "True") return fmt::format("{} is not Ready", node.meta.name);
    if (!pods) return "";
    for (const auto& pod : pods(node.meta.name))
        if (pod.is_mirror && !pod.is_ready && !pod.is_finished())
            return fmt::format("static Pod {} is not Ready", pod.full_name());
    return "";
}

}  // namespace

bool is_control_plane(const api::Node& node) {
    return kubernetes::is_control_plane(
        [&](std::string_view key) { return node.meta.labels.contains(std::string(key)); });
}

std::string quorum_problem(const std::vector<api::Node>& nodes, const std::string& name, const PodsOf& pods) {
    std::vector<const api::Node*> others;
    bool is_one = false;
    for (const auto& node : nodes) {
        if (!is_control_plane(node)) continue;
        if (node.meta.name == name) is_one = true;
        else others.push_back(&node);
    }
    if (!is_one || others.empty()) return "";
    const auto needed = others.size() == 1 ? 1 : (others.size() + 1) / 2 + 1;
    std::vector<std::string> faults;
    for (const auto* node : others)
        if (auto fault = fault_of(*node, pods); !fault.empty()) faults.push_back(std::move(fault));
    if (others.size() - faults.size() >= needed) return "";
    return fmt::format("{} of {} control planes would serve without it, {} must: {}", others.size() - faults.size(),
                       others.size() + 1, needed, base::join(faults, ", "));
}

}  // namespace kmm::drive
