// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/agent.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

namespace kmm::drive {
namespace {

std::optional<std::string> text_in(const value::Node& tree, std::initializer_list<std::string_view> path) {
    const auto* found = tree.find_path(path);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return found->text();
}

std::optional<kubernetes::Version> version_in(const value::Node& tree, std::initializer_list<std::string_view> path) {
    const auto text = text_in(tree, path);
    return text ? kubernetes::Version::parse(*text) : std::nullopt;
}

std::optional<bool> flag_in(const value::Node& tree, std::string_view name) {
    const auto* found = tree.find(name);
    return found == nullptr ? std::nullopt : found->as_bool();
}

std::string version_of_etcd(const value::Node& document) {
    const auto* manifests = document.find("manifests");
    if (manifests == nullptr) return "";
    for (const auto& manifest : manifests->items())
        if (manifest.get_string({"component"}) == "etcd") return text_in(manifest, {"version"}).value_or("");
    return "";
}

constexpr std::array<std::string_view, 3> k_components{"kube-apiserver", "kube-controller-manager", "kube-scheduler"};

/// Of the manifests of Kubernetes itself; one that is not whole has none.
std::vector<kubernetes::Version> versions_of_manifests(const value::Node& document) {
    std::vector<kubernetes::Version> versions;
    const auto* manifests = document.find("manifests");
    if (manifests == nullptr) return versions;
    for (const auto& manifest : manifests->items()) {
        if (std::find(k_components.begin(), k_components.end(), manifest.get_string({"component"})) ==
            k_components.end())
            continue;
        if (const auto version = version_in(manifest, {"version"})) versions.push_back(*version);
    }
    return versions;
}

}  // namespace

NodeSight read_sight(value::Node document) {
    NodeSight sight;
    sight.node = text_in(document, {"node"});
    sight.boot_id = text_in(document, {"bootID"}).value_or("");
    sight.is_control_plane = flag_in(document, "controlPlane").value_or(false);
    sight.are_manifests_whole = flag_in(document, "manifestsWhole");
    if (sight.is_control_plane) sight.manifests = versions_of_manifests(document);
    if (sight.manifests.size() == k_components.size())
        sight.control_plane = *std::min_element(sight.manifests.begin(), sight.manifests.end());
    sight.kubelet = version_in(document, {"kubelet", "running"});
    sight.installed_kubelet = version_in(document, {"kubelet", "version"});
    sight.etcd = version_of_etcd(document);
    if (const auto* server = document.find("apiServer"); server != nullptr && flag_in(*server, "ready") == false)
        sight.server_problem = text_in(*server, {"problem"}).value_or("it is not ready");
    sight.document = std::move(document);
    return sight;
}

std::string running_on(const NodeSight& sight) {
    const auto state = sight.document.get_string({"job", "state"});
    if (state == "running") return "the job " + base::escape(sight.document.get_string({"job", "key"}));
    // What the job has begun may outlive it. Another kubeadm may be one that pulls images.
    const auto* kubeadm = sight.document.find_path({"kubeadm", "running"});
    return state == "lost" && kubeadm != nullptr && kubeadm->as_bool() == true ? "kubeadm" : "";
}

NodeAgent::NodeAgent(cluster::NodeRunner& runner, sys::Clock& clock, std::function<bool()> interrupted,
                     WorkerSteps::Teller tell, WorkerSteps::Unanswered unanswered)
    : steps_(runner, clock, std::move(interrupted), std::move(tell),
             {"kubernetes", "KubernetesNodeFacts", "KubernetesNodeStep", {"job-running", "kubeadm-running"}},
             std::move(unanswered)) {}

}  // namespace kmm::drive
