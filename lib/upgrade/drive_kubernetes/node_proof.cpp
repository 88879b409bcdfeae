// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/node_proof.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/finding.hpp"
#include "upgrade/actor_parts/objects.hpp"

namespace kmm::drive {

using kubernetes::Inventory;
using kubernetes::Version;

namespace {

const kubernetes::NodeObject* find_node(const Inventory& seen, const std::string& name) {
    const auto found =
        std::find_if(seen.nodes.begin(), seen.nodes.end(), [&](const auto& node) { return node.meta.name == name; });
    return found == seen.nodes.end() ? nullptr : &*found;
}

/// Why `running` does not serve, "" if it does.
std::string problem_of(const kubernetes::Running& running) {
    if (!running.version) return running.problem;
    if (running.pod != nullptr && !running.pod->is_ready)
        return fmt::format("{} on {} is not Ready", running.component, running.node);
    return "";
}

/// Its version is not looked at: its image may have any tag.
std::string etcd_problem(const kubernetes::Observation& observed, const std::string& node) {
    for (const auto& running : observed.etcd)
        if (running.node == node && running.pod != nullptr && !running.pod->is_ready)
            return fmt::format("etcd on {} is not Ready", node);
    return "";
}

std::string ready_problem(const kubernetes::NodeObject& node) {
    const auto& name = node.meta.name;
    for (const auto& condition : node.conditions)
        if (condition.type == "Ready")
            return condition.status == "True" ? "" : fmt::format("Node {} is not Ready: {}", name, condition.reason);
    return fmt::format("Node {} has no condition Ready", name);
}

}  // namespace

std::string node_problem(const Inventory& seen, const std::string& node) {
    const auto* found = find_node(seen, node);
    return found == nullptr ? fmt::format("there is no Node {}", node) : ready_problem(*found);
}

std::string readiness_problem(const kubernetes::NodeObject& node, const kubernetes::Observation& observed,
                              bool is_control_plane) {
    if (auto problem = ready_problem(node); !problem.empty() || !is_control_plane) return problem;
    for (const auto& running : observed.control_plane)
        if (running.node == node.meta.name)
            if (auto problem = problem_of(running); !problem.empty()) return problem;
    return etcd_problem(observed, node.meta.name);
}

std::string control_plane_problem(const Inventory& seen, const std::string& node, const Version& version) {
    const auto observed = kubernetes::observe(seen);
    bool is_seen = false;
    for (const auto& running : observed.control_plane) {
        if (running.node != node) continue;
        is_seen = true;
        if (auto problem = problem_of(running); !problem.empty()) return problem;
        if (*running.version != version)
            return fmt::format("{} on {} runs {}, not {}", running.component, node, running.version->text(),
                               version.text());
    }
    if (!is_seen) return fmt::format("Node {} has no control plane", node);
    return etcd_problem(observed, node);
}

std::string kubelet_problem(const Inventory& seen, const std::string& node, const Version& version) {
    const auto* found = find_node(seen, node);
    if (found == nullptr) return fmt::format("there is no Node {}", node);
    if (Version::parse(found->kubelet) == version) return "";
    return fmt::format("Node {} says that its kubelet is {}, not {}", node,
                       found->kubelet.empty() ? "unknown" : base::escape(found->kubelet), version.text());
}

std::string configuration_problem(const Inventory& seen, const Version& version) {
    const auto found = kubernetes::configured_version(seen);
    if (found == version) return "";
    return fmt::format("ConfigMap kubeadm-config names {}, not {}", found ? found->text() : "no version",
                       version.text());
}

std::string older_control_planes(const Inventory& seen, const Version& version) {
    std::vector<std::string> others;
    for (const auto& running : kubernetes::observe(seen).control_plane)
        if (!running.version || *running.version < version)
            others.push_back(running.version ? fmt::format("{} on {} runs {}", running.component, running.node,
                                                           running.version->text())
                                             : running.problem);
    return others.empty() ? "" : kubernetes::name_some(others);
}

void await_none(sys::Clock& clock, const Deadline& deadline, const std::function<bool()>& interrupted,
                const std::string& node, const std::function<std::string()>& problem) {
    await_clear(clock, deadline, interrupted,
                fmt::format("kubectl describe node {}; kubectl get pods -n kube-system -o wide", node), problem);
}

}  // namespace kmm::drive
