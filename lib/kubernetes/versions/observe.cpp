// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/observe.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::kubernetes {
namespace {

constexpr std::string_view k_dump = "kubectl get nodes,pods,configmaps -A -o json";

Diagnostic fault_of(const char* code, std::string message, std::optional<Position> position, Exit exit,
                    std::string hint) {
    Diagnostic made;
    made.code = code;
    made.message = std::move(message);
    if (position && !position->file.empty()) { made.position = std::move(position); }
    made.exit = exit;
    made.hint = std::move(hint);
    return made;
}

/// What an image is called in its repository, as "kube-apiserver".
std::string_view image_name(std::string_view reference) {
    reference = reference.substr(0, reference.find('@'));
    reference.remove_prefix(reference.rfind('/') + 1);
    return reference.substr(0, reference.find(':'));
}

/// Reads the version of the Pod's container `component`.
void read_version(const PodObject& pod, Running& running) {
    running.pod = &pod;
    running.position = pod.meta.position;
    const auto container = std::find_if(pod.containers.begin(), pod.containers.end(),
                                        [&](const auto& each) { return each.name == running.component; });
    if (container == pod.containers.end()) {
        running.problem =
            fmt::format("Pod {} has no container {}", base::escape(pod.meta.full_name()), running.component);
        return;
    }
    running.position = container->position;
    if (const auto image = pod.running_images.find(running.component); image != pod.running_images.end()) {
        // Images of the same content share their names: the runtime may tell the name of another one.
        if (image_name(image->second) == image_name(container->image))
            running.version = Version::of_image(image->second);
    }
    if (!running.version) { running.version = Version::of_image(container->image); }
    if (!running.version) {
        running.problem =
            fmt::format("Pod {}: expected an image with a tag {}, found '{}'", base::escape(pod.meta.full_name()),
                        k_version_form, base::escape(container->image));
    }
}

Running component_of(std::string_view component, const NodeObject& node,
                     const std::map<std::string_view, const PodObject*>& system_pods) {
    Running running;
    running.component = component;
    running.node = node.meta.name;
    const std::string name = fmt::format("{}-{}", component, node.meta.name);
    const auto found = system_pods.find(name);
    if (found != system_pods.end()) {
        read_version(*found->second, running);
    } else {
        running.problem = fmt::format("control-plane node {}: Pod kube-system/{} was not found",
                                      base::escape(node.meta.name), base::escape(name));
        running.exit = Exit::not_found;
        running.position = node.meta.position;
    }
    return running;
}

Running kubelet_of(const NodeObject& node) {
    Running running;
    running.component = "kubelet";
    running.node = node.meta.name;
    running.position = node.meta.position;
    running.version = Version::parse(node.kubelet);
    if (!running.version) {
        running.problem = node.kubelet.empty()
                              ? fmt::format("Node {}: status.nodeInfo.kubeletVersion is missing, expected {}",
                                            base::escape(node.meta.name), k_version_form)
                              : fmt::format("Node {}: status.nodeInfo.kubeletVersion: expected {}, found '{}'",
                                            base::escape(node.meta.name), k_version_form, base::escape(node.kubelet));
    }
    return running;
}

template <typename Pick>
std::optional<Version> extreme(const std::vector<Running>& all, Pick&& better) {
    std::optional<Version> best;
    for (const auto& running : all) {
        if (!running.version) { return std::nullopt; }
        if (!best || better(*running.version, *best)) { best = running.version; }
    }
    return best;
}

/// The component of k_components that the Pod is, "" for other Pods.
std::string component_of_pod(const PodObject& pod) {
    for (const auto component : k_components) {
        if (pod.meta.ns == "kube-system" && !pod.node.empty() &&
            pod.meta.name == fmt::format("{}-{}", component, pod.node)) {
            return std::string(component);
        }
    }
    return "";
}

bool is_control_plane_node(const Observation& seen, const std::string& node) {
    return std::find(seen.control_plane_nodes.begin(), seen.control_plane_nodes.end(), node) !=
           seen.control_plane_nodes.end();
}

/// Who has made the node, "" if kubeadm may have.
std::string_view maker_of(const NodeObject& node, bool has_control_plane) {
    struct Mark {
        std::string_view text, maker;
        bool is_managed;  ///< its control plane is on no Node
    };
    /// Beginnings of keys of labels and annotations.
    static constexpr Mark k_keys[] = {{"machineconfiguration.openshift.io/", "OpenShift", false},
                                      {"kops.k8s.io/", "kOps", false},
                                      {"microk8s.io/", "MicroK8s", false},
                                      {"k8sd.io/", "Canonical Kubernetes", false},
                                      {"juju-charm", "Charmed Kubernetes", false},
                                      {"rke.cattle.io/", "RKE", false},
                                      {"node.k0sproject.io/", "k0s", false},
                                      {"talos.dev/", "Talos", false},
                                      {"extensions.talos.dev/", "Talos", false},
                                      {"kubernetes.azure.com/cluster", "AKS", true},
                                      {"eks.amazonaws.com/", "EKS", true},
                                      {"cloud.google.com/gke-", "GKE", true}};
    static constexpr Mark k_versions[] = {{"-eks-", "EKS", true}, {"-gke.", "GKE", true}};
    if (const auto name = distribution_of(node.kubelet); !name.empty()) { return name; }
    for (const auto& mark : k_versions) {
        if (!has_control_plane && node.kubelet.find(mark.text) != std::string::npos) { return mark.maker; }
    }
    for (const auto* labels : {&node.meta.labels, &node.meta.annotations}) {
        for (const auto& mark : k_keys) {
            const bool is_marked = std::any_of(labels->begin(), labels->end(),
                                               [&](const auto& each) { return each.first.starts_with(mark.text); });
            if (is_marked && !(mark.is_managed && has_control_plane)) { return mark.maker; }
        }
    }
    return node.image.starts_with("Talos (") ? "Talos" : std::string_view();
}

/// What to do about Pods of the control plane that are not there.
std::string source_hint(const Inventory& inventory) {
    if (auto hint = distribution_hint(inventory); !hint.empty()) { return hint; }
    return inventory.is_live ? "see kubectl get pods -n kube-system" : fmt::format("dump everything: {}", k_dump);
}

/// What to do about that one: where other Pods of the control plane are seen, it is not the dump that lacks it.
std::string absence_hint(const Inventory& inventory, const Observation& seen, const Running& absent) {
    const bool has_others =
        std::any_of(seen.control_plane.begin(), seen.control_plane.end(),
                    [&](const auto& each) { return each.node == absent.node && each.pod != nullptr; });
    return has_others ? fmt::format("look into /etc/kubernetes/manifests of {}: kmm-worker kubernetes repair puts a "
                                    "manifest back that kubeadm has left in its backup",
                                    base::escape(absent.node))
                      : source_hint(inventory);
}

/// What to do about a version that cannot be read.
std::string readable_hint(const Inventory& inventory, const Running& running) {
    if (running.pod == nullptr) {
        const auto node = base::escape(running.node);
        const bool is_reported =
            std::any_of(inventory.nodes.begin(), inventory.nodes.end(),
                        [&](const auto& each) { return each.meta.name == running.node && !each.kubelet.empty(); });
        if (!is_reported) { return fmt::format("delete Node {} if no kubelet runs it", node); }
        return inventory.is_live ? fmt::format("install a released kubelet on {}: kubelet --version prints its version",
                                               node)
                                 : fmt::format("correct the dump, or make it once more: {}", k_dump);
    }
    const auto& containers = running.pod->containers;
    const bool is_named = std::any_of(containers.begin(), containers.end(),
                                      [&](const auto& each) { return each.name == running.component; });
    return is_named ? fmt::format("write the tag into the manifest of {}, before the digest if there is one",
                                  running.component)
                    : fmt::format("name a container of its manifest {}", running.component);
}

std::string label_hint(const std::string& node) {
    return fmt::format("kubectl label node {} node-role.kubernetes.io/control-plane=", base::escape(node));
}

/// Components that run where no control plane is known to be: they count, and the nodes are a fault.
void collect_strays(const Inventory& inventory, Observation& seen) {
    for (const auto& pod : inventory.pods) {
        const auto component = component_of_pod(pod);
        if (component.empty() || is_control_plane_node(seen, pod.node)) { continue; }
        Running running;
        running.component = component;
        running.node = pod.node;
        read_version(pod, running);
        seen.control_plane.push_back(std::move(running));
        const bool known = std::any_of(inventory.nodes.begin(), inventory.nodes.end(),
                                       [&](const auto& each) { return each.meta.name == pod.node; });
        const auto node = base::escape(pod.node), name = base::escape(pod.meta.full_name());
        seen.faults.push_back(fault_of(
            "not-seen",
            known ? fmt::format("Pod {} runs on Node {}, which has no label node-role.kubernetes.io/control-plane",
                                name, node)
                  : fmt::format("Pod {} runs on Node {}, which was not found", name, node),
            pod.meta.position, Exit::not_found,
            known ? label_hint(pod.node) : source_hint(inventory)));
    }
}

void collect_faults(const Inventory& inventory, Observation& seen) {
    if (inventory.nodes.empty()) {
        seen.faults.push_back(fault_of(
            "no-nodes", inventory.is_live ? "the cluster has no Node" : "the documents contain no Node", std::nullopt,
            Exit::not_found, inventory.is_live ? "name another cluster with --context" : source_hint(inventory)));
        return;
    }
    if (seen.control_plane_nodes.empty()) {
        const auto distribution = distribution_hint(inventory);
        const auto own =
            seen.control_plane.empty()
                ? std::string("kubeadm sets the label; the control plane of a managed cluster cannot be observed")
                : label_hint(seen.control_plane.front().node);
        seen.faults.push_back(
            fault_of("no-control-plane",
                     "no Node has the label node-role.kubernetes.io/control-plane, so the version of the control "
                     "plane is not known",
                     std::nullopt, Exit::not_found,
                     distribution.empty() ? own : distribution));
    }
    for (const auto* list : {&seen.control_plane, &seen.kubelets}) {
        for (const auto& running : *list) {
            if (running.version) { continue; }
            const bool absent = running.exit == Exit::not_found;
            seen.faults.push_back(fault_of(absent ? "not-seen" : "bad-version", running.problem, running.position,
                                           running.exit,
                                           absent ? absence_hint(inventory, seen, running)
                                                  : readable_hint(inventory, running)));
        }
    }
    sort_and_merge(seen.faults);
}

}  // namespace

std::optional<Version> Observation::lowest_control_plane() const {
    return extreme(control_plane, [](const Version& a, const Version& b) { return a < b; });
}

std::optional<Version> Observation::highest_control_plane() const {
    return extreme(control_plane, [](const Version& a, const Version& b) { return a > b; });
}

std::optional<Version> Observation::lowest_kubelet() const {
    return extreme(kubelets, [](const Version& a, const Version& b) { return a < b; });
}

std::optional<Version> Observation::highest_kubelet() const {
    return extreme(kubelets, [](const Version& a, const Version& b) { return a > b; });
}

std::optional<Version> Observation::control_plane_of(std::string_view node) const {
    std::optional<Version> lowest;
    for (const auto& running : control_plane) {
        if (running.node != node) { continue; }
        if (!running.version) { return std::nullopt; }
        if (!lowest || *running.version < *lowest) { lowest = running.version; }
    }
    return lowest;
}

std::string_view distribution_of(std::string_view kubelet) noexcept {
    for (const std::string_view name : {"k3s", "rke2", "k0s"}) {
        const auto at = kubelet.find('+');
        if (at != std::string_view::npos && kubelet.substr(at + 1).starts_with(name)) { return name; }
    }
    return {};
}

std::string distribution_hint(const Inventory& inventory) {
    const auto& nodes = inventory.nodes;
    // Made by kubeadm, a cluster may run what the makers of managed ones build.
    const bool has_control_plane =
        std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.is_control_plane(); });
    for (const auto& node : nodes) {
        if (const auto name = maker_of(node, has_control_plane); !name.empty()) {
            return fmt::format("this is a cluster of {}, which has no control plane of kubeadm: upgrade it as {} says",
                               name, name);
        }
    }
    return {};
}

Observation observe(const Inventory& inventory) {
    Observation seen;
    std::map<std::string_view, const PodObject*> system_pods;
    for (const auto& pod : inventory.pods) {
        if (pod.meta.ns == "kube-system") { system_pods.emplace(pod.meta.name, &pod); }
    }
    for (const auto& node : inventory.nodes) {
        seen.kubelets.push_back(kubelet_of(node));
        if (!node.is_control_plane()) { continue; }
        seen.control_plane_nodes.push_back(node.meta.name);
        for (const auto component : k_components) {
            seen.control_plane.push_back(component_of(component, node, system_pods));
        }
        auto etcd = component_of("etcd", node, system_pods);
        if (etcd.pod != nullptr) { seen.etcd.push_back(std::move(etcd)); }
    }
    for (const auto& [name, pod] : system_pods) {
        const auto* app = find_label(pod->meta.labels, "k8s-app");
        // One that was evicted, or ended with its node, stays for a while beside the one that runs.
        const bool has_ended = pod->phase == "Succeeded" || pod->phase == "Failed";
        if (app == nullptr || *app != "kube-proxy" || has_ended) { continue; }
        Running proxy;
        proxy.component = "kube-proxy";
        proxy.node = pod->node;
        read_version(*pod, proxy);
        seen.proxies.push_back(std::move(proxy));
    }
    collect_strays(inventory, seen);
    collect_faults(inventory, seen);
    return seen;
}

}  // namespace kmm::kubernetes
