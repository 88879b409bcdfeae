// SPDX-License-Identifier: Apache-2.0
#include "render/hub.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/glob.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/hub_module.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/resolve.hpp"
#include "render/parts.hpp"

namespace kmm::render {

namespace {

using value::Node;

constexpr std::string_view k_container = "spec.moduleLoader.container";
constexpr std::string_view k_mappings = "spec.moduleLoader.container.kernelMappings";

/// What the hub asks the cluster to report of the Module's status.
Node feedback_rules() {
    Node paths = Node::sequence();
    for (const char* part : {"devicePlugin", "dra", "moduleLoader"}) {
        for (const char* number : {"availableNumber", "desiredNumber", "nodesMatchingSelectorNumber"}) {
            const std::string name = fmt::format("{}.{}", part, number);
            paths.push_back(Node::mapping({{"name", name}, {"path", ".status." + name}}));
        }
    }
    return Node::sequence({Node::mapping({{"jsonPaths", std::move(paths)}, {"type", "JSONPaths"}})});
}

Node manifest_work_of(const api::ManagedClusterModule& hub, const std::string& cluster, const Node& module) {
    const std::string& name = hub.meta.name;
    Node metadata =
        Node::mapping({{"labels", Node::mapping({{std::string(api::k_label_managed_cluster_module), name}})},
                       {"name", name},
                       {"namespace", cluster}});
    if (!hub.meta.uid.empty()) {
        set_owner(metadata,
                  controller_reference("hub.kmm.sigs.x-k8s.io/v1beta1", "ManagedClusterModule", name, hub.meta.uid));
    }
    const Node identifier = Node::mapping({{"group", "kmm.sigs.x-k8s.io"},
                                           {"name", name},
                                           {"namespace", hub.spoke_namespace},
                                           {"resource", "modules"}});
    const Node config = Node::mapping({{"feedbackRules", feedback_rules()}, {"resourceIdentifier", identifier}});
    const Node workload = Node::mapping({{"manifests", Node::sequence({module})}});
    return object("work.open-cluster-management.io/v1", "ManifestWork", std::move(metadata),
                  Node::mapping({{"manifestConfigs", Node::sequence({config})}, {"workload", workload}}));
}

/// One ManagedClusterModule, and what it finds.
class HubModule {
public:
    HubModule(const api::ManagedClusterModule& hub, const std::vector<std::string>& missing_images,
              Diagnostics& findings)
        : hub_(hub),
          module_(plan::module_of(hub)),
          resolver_(module_),
          missing_images_(missing_images),
          findings_(findings) {}

    void add_bundles(const std::vector<HubCluster>& clusters, std::vector<HubBundle>& bundles) {
        if (hub_.meta.deleting) {
            return warn("", "hub-skipped", "it is being deleted, and gives no cluster anything", "");
        }
        std::size_t selected = 0;
        for (const auto& cluster : clusters) {
            if (!is_selected(cluster)) { continue; }
            ++selected;
            if (auto mappings = mappings_for(cluster)) {
                Node module = in_key_order(module_with(std::move(*mappings)));
                Node work = in_key_order(manifest_work_of(hub_, cluster.name, module));
                bundles.push_back({cluster.name, std::move(module), std::move(work)});
            }
        }
        if (selected == 0) { say_none_selected(clusters); }
    }

private:
    void warn(std::string_view field, const char* code, const std::string& message, std::string hint) {
        Diagnostic diagnostic;
        diagnostic.severity = Severity::warning;
        diagnostic.code = code;
        diagnostic.message = fmt::format("ManagedClusterModule {}: {}", hub_.meta.name, message);
        if (const auto place = module_.places.find(field); place != module_.places.end()) {
            diagnostic.position = place->second;
        } else if (!hub_.meta.origin.file.empty()) {
            diagnostic.position = hub_.meta.origin;
        }
        diagnostic.hint = std::move(hint);
        findings_.push_back(std::move(diagnostic));
    }

    void skip(const HubCluster& cluster, const std::string& why, std::string hint, std::string_view field = "") {
        warn(field, "hub-skipped", fmt::format("cluster {} gets nothing: {}", cluster.name, why), std::move(hint));
    }

    bool is_selected(const HubCluster& cluster) {
        if (cluster.labels) { return plan::selects(hub_.selector, *cluster.labels); }
        if (!hub_.selector.empty()) {
            warn("", "hub-labels-unknown",
                 fmt::format("there is no ManagedCluster {}, taken as selected because it was named", cluster.name),
                 "add the ManagedCluster with -f to have its labels looked at");
        }
        return true;
    }

    void say_none_selected(const std::vector<HubCluster>& clusters) {
        std::vector<std::string> pairs, names;
        for (const auto& [key, text] : hub_.selector) { pairs.push_back(fmt::format("{}={}", key, text)); }
        for (const auto& cluster : clusters) { names.push_back(cluster.name); }
        constexpr std::size_t shown_max = 5;
        warn("", "hub-not-selected",
             fmt::format("no cluster has the labels {}, looked at {}", base::join(pairs, ","),
                         base::join_some(names, shown_max)),
             "label the ManagedCluster, or correct spec.selector");
    }

    /// The mappings of the cluster's kernels; nullopt, and a finding, if it gets none.
    std::optional<Node> mappings_for(const HubCluster& cluster) {
        if (!module_.module_loader || !hub_.module_spec.is_mapping()) {
            skip(cluster, "spec.moduleSpec has no moduleLoader, on which KMM's hub fails", "add moduleLoader");
            return std::nullopt;
        }
        if (!cluster.kernels || cluster.kernels->empty()) {
            skip(
                cluster,
                cluster.kernels ? "it has no node that says which kernel it runs"
                                : fmt::format("its ManagedCluster has no claim {}", k_kernel_claim),
                "KMM on the cluster publishes it with KMM_MANAGED=1; or name the cluster's own context with --context");
            return std::nullopt;
        }
        Node mappings = Node::sequence();
        std::vector<std::string> done;
        for (const auto& kernel : *cluster.kernels) {
            const std::string trimmed = api::trim_kernel(kernel);
            if (std::find(done.begin(), done.end(), trimmed) != done.end()) { continue; }
            done.push_back(trimmed);
            if (!add_mapping(cluster, trimmed, mappings)) { return std::nullopt; }
        }
        if (mappings.items().empty()) {
            skip(cluster, "none of its kernels has a mapping",
                 "add a mapping, or leave the cluster out of spec.selector", k_mappings);
            return std::nullopt;
        }
        return mappings;
    }

    /// False if the cluster gets nothing because of this kernel.
    bool add_mapping(const HubCluster& cluster, const std::string& kernel, Node& mappings) {
        const plan::Resolution resolution = resolver_.resolve(kernel);
        if (const auto* fault = std::get_if<plan::MappingFault>(&resolution)) {
            skip(cluster, fmt::format("kernel {}: {}", base::escape(kernel), fault->diagnostic.message),
                 fault->diagnostic.hint);
            return false;
        }
        const auto* resolved = std::get_if<plan::Resolved>(&resolution);
        if (resolved == nullptr) {
            warn(k_mappings, "hub-no-mapping",
                 fmt::format("kernel {} of cluster {} has no mapping", base::escape(kernel), cluster.name),
                 "its nodes get no module; add a mapping");
            return true;
        }
        const std::string& image = resolved->config.container_image;
        if (std::any_of(missing_images_.begin(), missing_images_.end(),
                        [&](const std::string& glob) { return base::glob_matches(glob, image); })) {
            const bool made = resolved->build || resolved->sign;
            skip(cluster, fmt::format("image {} is missing", base::escape(image)),
                 made ? "the hub builds or signs it first" : "push it; the hub waits for all images of a cluster");
            return false;
        }
        if (const auto fault = plan::image_name_fault(image)) {
            skip(cluster, fmt::format("kernel {}: {}", base::escape(kernel), fault->message), fault->hint,
                 fmt::format("{}.kernelMappings[{}]", k_container, resolved->mapping_index));
            return false;
        }
        const auto& container = module_.module_loader->container;
        if (container.kernel_mappings[resolved->mapping_index].registry_tls) {
            warn_lost("registryTLS", resolved->mapping_index);
        }
        if (in_tree_of_cluster(container, resolved->config) != resolved->config.in_tree_modules_to_remove) {
            warn_lost("inTreeModulesToRemove", resolved->mapping_index);
        }
        Node mapping = Node::mapping({{"containerImage", image}});
        if (!resolved->config.in_tree_modules_to_remove.empty()) {
            mapping.set("inTreeModulesToRemove", Node::strings(resolved->config.in_tree_modules_to_remove));
        }
        mapping.set("literal", kernel);
        mappings.push_back(std::move(mapping));
        return true;
    }

    /// What the cluster makes of the mapping that it gets: an empty list is not written, and the old field wins.
    static std::vector<std::string> in_tree_of_cluster(const api::ModuleLoaderContainer& container,
                                                       const api::ModuleConfig& config) {
        if (!container.in_tree_module_to_remove.empty()) { return {container.in_tree_module_to_remove}; }
        if (!config.in_tree_modules_to_remove.empty()) { return config.in_tree_modules_to_remove; }
        return container.in_tree_modules_to_remove.value_or(std::vector<std::string>{});
    }

    void warn_lost(std::string_view field, std::size_t index) {
        warn(fmt::format("{}.kernelMappings[{}].{}", k_container, index, field), "hub-field-lost",
             fmt::format("{} of kernelMappings[{}] does not reach the clusters", field, index),
             "set it in the container, which does");
    }

    [[nodiscard]] Node module_with(Node mappings) const {
        Node spec = hub_.module_spec;
        Node* loader = find_member(spec, "moduleLoader");
        Node* container = loader == nullptr ? nullptr : find_member(*loader, "container");
        if (container != nullptr) {
            std::erase_if(container->members(),
                          [](const value::Member& member) { return member.key == "build" || member.key == "sign"; });
            container->set("kernelMappings", std::move(mappings));
        }
        return object(api::k_group_version, "Module",
                      Node::mapping({{"name", hub_.meta.name}, {"namespace", hub_.spoke_namespace}}), std::move(spec));
    }

    static Node* find_member(Node& node, std::string_view key) {
        for (auto& member : node.members()) {
            if (member.key == key) { return &member.value; }
        }
        return nullptr;
    }

    const api::ManagedClusterModule& hub_;
    api::Module module_;
    plan::Resolver resolver_;
    const std::vector<std::string>& missing_images_;
    Diagnostics& findings_;
};

}  // namespace

std::vector<std::string> claimed_kernels(std::string_view claim) {
    std::vector<std::string> result;
    while (!claim.empty()) {
        const std::size_t end = claim.find('\n');
        const std::string kernel(claim.substr(0, end));
        claim = end == std::string_view::npos ? std::string_view() : claim.substr(end + 1);
        if (!kernel.empty() && std::find(result.begin(), result.end(), kernel) == result.end()) {
            result.push_back(kernel);
        }
    }
    return result;
}

HubBundles hub_bundles(const std::vector<api::ManagedClusterModule>& modules, const std::vector<HubCluster>& clusters,
                       const std::vector<std::string>& missing_images) {
    HubBundles result;
    for (const auto& module : modules) {
        HubModule(module, missing_images, result.findings).add_bundles(clusters, result.bundles);
    }
    std::stable_sort(result.bundles.begin(), result.bundles.end(),
                     [](const HubBundle& a, const HubBundle& b) { return a.cluster < b.cluster; });
    sort_and_merge(result.findings);
    return result;
}

}  // namespace kmm::render
