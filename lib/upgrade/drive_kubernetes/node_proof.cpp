// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/node_proof.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/checks.hpp"
#include "kubernetes/observe.hpp"
#include "upgrade/drive/objects.hpp"

namespace kmm::drive {

using kubernetes::Inventory;
using kubernetes::Version;

namespace {

const kubernetes::NodeObject* find_node(const Inventory& seen, const std::string& name) {
    const auto found =
        std::find_if(seen.nodes.begin(), seen.nodes.end(), [&](const auto& node) { return node.meta.name == name; });
    return found == seen.nodes.end() ? nullptr : &*found;
}

/// The first problem of `running`, which is to have `version`, or at least that.
std::string problem_of(const kubernetes::Running& running) {
    if (!running.version) return running.problem;
    if (running.pod != nullptr && !running.pod->is_ready)
        return fmt::format("{} on {} is not Ready", running.component, running.node);
    return "";
}

}  // namespace

std::string node_problem(const Inventory& seen, const std::string& node) {
    const auto* found = find_node(seen, node);
    if (found == nullptr) return fmt::format("there is no Node {}", node);
    for (const auto& condition : found->conditions)
        if (condition.type == "Ready")
            return condition.status == "True" ? "" : fmt::format("Node {} is not Ready: {}", node, condition.reason);
    return fmt::format("Node {} has no condition Ready", node);
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
    for (const auto& running : observed.etcd)
        if (running.node == node && running.pod != nullptr && !running.pod->is_ready)
            return fmt::format("etcd on {} is not Ready", node);
    return "";
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
