// SPDX-License-Identifier: Apache-2.0
// Facts from the objects of a cluster.
#include <algorithm>
#include <array>

#include "api/linux_nodes.hpp"
#include "recipe/resource/facts.hpp"

namespace kmm::recipe::plan {

using value::Node;

namespace {

/// Of a node that is cordoned, joins, reboots or is short of something: it comes back, and wants its drivers then.
constexpr std::array<std::string_view, 8> k_passing_taints{
    "node.cloudprovider.kubernetes.io/uninitialized", "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",             "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/not-ready",                   "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unreachable",                 "node.kubernetes.io/unschedulable"};

bool keeps_pods_away(const Node& node, bool operator_only) {
    const Node* taints = node.find_path({"spec", "taints"});
    if (taints == nullptr) { return false; }
    return std::any_of(taints->items().begin(), taints->items().end(), [&](const Node& taint) {
        const std::string effect = taint.get_string({"effect"});
        if (effect != "NoSchedule" && effect != "NoExecute") { return false; }
        const auto key = taint.get_string({"key"});
        return operator_only ||
               std::find(k_passing_taints.begin(), k_passing_taints.end(), key) == k_passing_taints.end();
    });
}

void add_node(Facts& facts, const Node& node, bool operator_only) {
    KernelFacts one;
    one.kernel = node.get_string({"status", "nodeInfo", "kernelVersion"});
    const bool is_away = keeps_pods_away(node, operator_only);
    if (one.kernel.empty() || (operator_only ? is_away : !api::runs_linux(node))) { return; }
    one.os_image = node.get_string({"status", "nodeInfo", "osImage"});
    if (const Node* labels = node.find_path({"metadata", "labels"})) {
        for (const auto& label : labels->members()) { one.labels[label.key] = label.value.text(); }
    }
    (is_away ? facts.left_out : facts.kernels).push_back(std::move(one));
}

/// The newest version that was reached. ClusterVersion lists the newest first.
void add_cluster_version(Facts& facts, const Node& object) {
    const Node* history = object.find_path({"status", "history"});
    if (history == nullptr) { return; }
    for (const auto& entry : history->items()) {
        if (entry.get_string({"state"}) == "Completed") {
            facts.cluster_version = entry.get_string({"version"});
            return;
        }
    }
}

/// status has the addresses inside the cluster that spec leaves out; the operator reads spec.
void add_proxy(Facts& facts, const Node& object, bool operator_only) {
    const auto text = [&](const char* key) {
        const std::string effective = object.get_string({"status", key});
        return operator_only || effective.empty() ? object.get_string({"spec", key}) : effective;
    };
    facts.proxy =
        Proxy{text("httpProxy"), text("httpsProxy"), text("noProxy"), object.get_string({"spec", "trustedCA", "name"})};
}

/// "417.94.202410211619-0" of "Red Hat Enterprise Linux CoreOS 417.94.202410211619-0 (Plow)".
std::string_view release_of(std::string_view os_image) {
    for (std::size_t at = 0; at < os_image.size();) {
        const std::size_t end = std::min(os_image.find(' ', at), os_image.size());
        const auto word = os_image.substr(at, end - at);
        if (!word.empty() && word.find_first_not_of("0123456789.-") == std::string_view::npos &&
            word.find('.') != std::string_view::npos) {
            return word;
        }
        at = end + 1;
    }
    return {};
}

/// The stream has a tag for each release of the nodes' system.
void add_toolkits(Facts& facts, const Node& stream, bool operator_only) {
    const Node* tags = stream.find_path({"status", "tags"});
    if (tags == nullptr) { return; }
    const auto add = [&](KernelFacts& one) {
        if (is_system_of_okd(one.os_image) && !operator_only) { return; }
        const auto release = release_of(one.os_image);
        for (const auto& tag : tags->items()) {
            const Node* items = tag.find("items");
            if (release.empty() || tag.get_string({"tag"}) != release || items == nullptr || items->items().empty()) {
                continue;
            }
            one.toolkit = DriverToolkit{items->items()[0].get_string({"dockerImageReference"}), one.kernel, "",
                                        parse_os_image(one.os_image, false).os};
        }
    };
    std::for_each(facts.kernels.begin(), facts.kernels.end(), add);
    std::for_each(facts.left_out.begin(), facts.left_out.end(), add);
}

}  // namespace

bool is_system_of_okd(std::string_view os_image) {
    return os_image.starts_with("CentOS ") || os_image.starts_with("Fedora ");
}

Facts observe_facts(std::span<const value::Document> objects, bool operator_only) {
    Facts facts;
    const Node* stream = nullptr;
    for (const auto& document : objects) {
        const Node& object = document.root;
        const std::string kind = object.get_string({"kind"}), group = object.get_string({"apiVersion"});
        const std::string name = object.get_string({"metadata", "name"}),
                          name_space = object.get_string({"metadata", "namespace"});
        if (kind == "Node" && group == "v1") {
            add_node(facts, object, operator_only);
        } else if (kind == "ClusterVersion" && group.starts_with("config.openshift.io/")) {
            add_cluster_version(facts, object);
            // Only OpenShift has this kind.
            for (const auto group_version : {"build.openshift.io/v1", "config.openshift.io/v1", "image.openshift.io/v1",
                                             "security.openshift.io/v1"}) {
                facts.api_versions.emplace_back(group_version);
            }
        } else if (kind == "Proxy" && group.starts_with("config.openshift.io/") && name == "cluster") {
            add_proxy(facts, object, operator_only);
        } else if (kind == "ConfigMap" && name == "machine-config-osimageurl" &&
                   name_space == "openshift-machine-config-operator") {
            const std::string url = object.get_string({"data", "osImageURL"});
            if (!url.empty()) { facts.os_image_url = url; }
        } else if (kind == "Secret" && name.find("builder-dockercfg") != std::string::npos) {
            facts.push_secrets.emplace(name_space, name);
        } else if (kind == "ImageStream" && name == "driver-toolkit" && name_space == "openshift") {
            stream = &object;
        }
    }
    if (stream != nullptr) { add_toolkits(facts, *stream, operator_only); }
    return facts;
}

}  // namespace kmm::recipe::plan
