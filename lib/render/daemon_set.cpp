// SPDX-License-Identifier: Apache-2.0
// Device-plugin and DRA DaemonSets, DeviceClasses. Source: KMM device_plugin_reconciler.go, dra_reconciler.go; facts:
// KMM 9.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "render/parts.hpp"

namespace kmm::render {

namespace {

using value::Node;

constexpr std::string_view k_namespace_label = "kmm.node.kubernetes.io/module.namespace";
constexpr std::string_view k_plugins_directory = "/var/lib/kubelet/plugins/";
constexpr std::string_view k_registry_directory = "/var/lib/kubelet/plugins_registry/";
constexpr std::string_view k_cdi_directory = "/var/run/cdi";
constexpr int k_health_port = 51515;

/// What distinguishes the two kinds of DaemonSets.
struct PluginRole {
    std::string_view name;  ///< "device-plugin" or "dra"
    Node preset_mounts, preset_volumes, preset_env;
};

PluginRole device_plugin_role() {
    constexpr std::string_view volume = "kubelet-device-plugins";
    constexpr std::string_view path = "/var/lib/kubelet/device-plugins";
    return {"device-plugin", Node::sequence({mount(volume, path)}),
            Node::sequence({host_path(volume, path, "Directory")}), Node::sequence()};
}

Node env_text(std::string_view name, std::string_view text) { return Node::mapping({{"name", name}, {"value", text}}); }

PluginRole dra_role() {
    return {"dra",
            Node::sequence({mount("kubelet-plugins", k_plugins_directory),
                            mount("kubelet-plugins-registry", k_registry_directory), mount("cdi", k_cdi_directory)}),
            Node::sequence({host_path("kubelet-plugins", k_plugins_directory, "DirectoryOrCreate"),
                            host_path("kubelet-plugins-registry", k_registry_directory, "Directory"),
                            host_path("cdi", k_cdi_directory, "DirectoryOrCreate")}),
            Node::sequence({env_field("NODE_NAME", "spec.nodeName"), env_field("POD_UID", "metadata.uid"),
                            env_text("CDI_ROOT", k_cdi_directory),
                            env_text("KUBELET_REGISTRAR_DIRECTORY_PATH", k_registry_directory),
                            env_text("KUBELET_PLUGINS_DIRECTORY_PATH", k_plugins_directory),
                            env_text("HEALTHCHECK_PORT", std::to_string(k_health_port))})};
}

void append_items(Node& list, const Node* more) {
    if (more == nullptr) { return; }
    for (const auto& item : more->items()) { list.push_back(item); }
}

void set_list(Node& node, const char* key, Node list) {
    if (!list.items().empty()) { node.set(key, std::move(list)); }
}

/// A container of the Module's own words, privileged, with the preset parts first.
Node plugin_container(const Node& source, const std::string& name, const Node& preset_env, const Node& preset_mounts) {
    Node container = Node::mapping({{"name", name}, {"securityContext", Node::mapping({{"privileged", true}})}});
    for (const char* key : {"args", "command", "image", "imagePullPolicy", "resources"}) {
        const Node* value = source.find(key);
        if (value != nullptr && !value->is_null()) { container.set(key, *value); }
    }
    Node env = preset_env;
    append_items(env, source.find("env"));
    set_list(container, "env", std::move(env));
    Node mounts = preset_mounts;
    append_items(mounts, source.find("volumeMounts"));
    set_list(container, "volumeMounts", std::move(mounts));
    return container;
}

Node liveness_probe() {
    return Node::mapping({{"failureThreshold", 3},
                          {"grpc", Node::mapping({{"port", k_health_port}, {"service", "liveness"}})},
                          {"initialDelaySeconds", 30},
                          {"periodSeconds", 10},
                          {"timeoutSeconds", 5}});
}

const std::string& loader_version(const api::Module& module) {
    static const std::string none;
    return module.module_loader ? module.module_loader->container.version : none;
}

void set_version_label(const Scene& scene, const api::Module& module, api::Labels& labels) {
    const std::string& version = loader_version(module);
    if (version.empty()) { return; }
    labels[api::label_version_schedule(scene.schedule_key, module.meta.namespace_, module.meta.name)] = version;
}

api::Labels plugin_labels(const Scene& scene, const api::Module& module, const PluginRole& role) {
    api::Labels labels{{std::string(api::k_label_module_name), module.meta.name}};
    if (!scene.is_released()) { labels[std::string(api::k_label_role)] = role.name; }
    set_version_label(scene, module, labels);
    return labels;
}

/// Where the Pods go. Without moduleLoader nothing is loaded, so nothing is waited for.
api::Labels plugin_node_selector(const Scene& scene, const api::Module& module, const PluginRole& role) {
    if (!module.module_loader) { return module.selector; }
    const std::string& ns = module.meta.namespace_;
    const std::string& name = module.meta.name;
    api::Labels labels{{api::label_ready(ns, name), ""}};
    if (role.name == "device-plugin" && !scene.is_released()) {
        labels[api::label_device_plugin_target(ns, name)] = "";
    }
    set_version_label(scene, module, labels);
    return labels;
}

Node plugin_pod_spec(const Scene& scene, const api::Module& module, const Node& plugin, const PluginRole& role) {
    const Node none = Node::sequence();
    Node container =
        plugin_container(*plugin.find("container"), std::string(role.name), role.preset_env, role.preset_mounts);
    if (role.name == "dra") { container.set("livenessProbe", liveness_probe()); }
    Node volumes = role.preset_volumes;
    append_items(volumes, plugin.find("volumes"));
    Node spec = Node::mapping({{"containers", Node::sequence({std::move(container)})},
                               {"priorityClassName", "system-node-critical"},
                               {"volumes", std::move(volumes)}});
    if (const Node* init = plugin.find("initContainer"); init != nullptr && init->is_mapping()) {
        spec.set("initContainers",
                 Node::sequence({plugin_container(*init, fmt::format("{}-init", role.name), none, none)}));
    }
    if (role.name == "dra") { spec.set("hostNetwork", true); }
    const api::Labels selector = plugin_node_selector(scene, module, role);
    if (!selector.empty()) { spec.set("nodeSelector", label_tree(selector)); }
    const std::string account = plugin.get_string({"serviceAccountName"});
    if (!account.empty()) { spec.set("serviceAccountName", account); }
    if (const Node* token = plugin.find("automountServiceAccountToken"); token != nullptr && token->as_bool()) {
        spec.set("automountServiceAccountToken", *token->as_bool());
    }
    set_pull_secret(spec, module.image_repo_secret);
    set_tolerations(spec, module.tolerations);
    return spec;
}

Node daemon_set(const Scene& scene, const api::Module& module, const Node& plugin, const PluginRole& role) {
    const Node labels = label_tree(plugin_labels(scene, module, role));
    Node pod_metadata = Node::mapping({{"labels", labels}});
    set_finalizers(pod_metadata, scene.finalizers({std::string(k_plugin_finalizer)}));
    Node spec = Node::mapping({{"selector", Node::mapping({{"matchLabels", labels}})},
                               {"template", Node::mapping({{"metadata", std::move(pod_metadata)},
                                                           {"spec", plugin_pod_spec(scene, module, plugin, role)}})}});
    // KMM lets the API server make the name from generateName; here it is made from the same and what tells the
    // DaemonSets of a Module apart, so that applying twice gives one object.
    Node metadata = Node::mapping({{"generateName", fmt::format("{}-{}-", module.meta.name, role.name)},
                                   {"labels", labels},
                                   {"name", daemon_set_name(module, role.name, loader_version(module))},
                                   {"namespace", module.meta.namespace_}});
    if (!module.meta.uid.empty()) {
        set_owner(metadata, controller_reference(api::k_group_version, "Module", module.meta.name, module.meta.uid));
    }
    return object("apps/v1", "DaemonSet", std::move(metadata), std::move(spec));
}

Node device_class(const api::Module& module, const Node& source) {
    const Node labels = Node::mapping({{std::string(api::k_label_module_name), module.meta.name},
                                       {std::string(k_namespace_label), module.meta.namespace_}});
    Node spec = Node::mapping();
    for (const char* key : {"config", "selectors"}) {
        const Node* list = source.find(key);
        if (list != nullptr && !list->items().empty()) { spec.set(key, *list); }
    }
    return object("resource.k8s.io/v1", "DeviceClass",
                  Node::mapping({{"labels", labels}, {"name", source.get_string({"name"})}}), std::move(spec));
}

}  // namespace

std::string daemon_set_name(const api::Module& module, std::string_view role, const std::string& version) {
    const std::string start = fmt::format("{}-{}", module.meta.name, role);
    return fmt::format("{}-{}", start,
                       short_hash(fmt::format("{}/{}/{}/{}", module.meta.namespace_, module.meta.name, role, version)));
}

void add_device_plugins(Scene& scene, std::vector<Node>& out) {
    const PluginRole role = device_plugin_role();
    for (const auto& module : scene.objects.modules) {
        if (!module.device_plugin || module.meta.deleting) { continue; }
        out.push_back(daemon_set(scene, module, *module.device_plugin, role));
    }
}

void add_dra(Scene& scene, std::vector<Node>& out) {
    const PluginRole role = dra_role();
    std::map<std::string, const api::Module*> owners;
    for (const auto& module : scene.objects.modules) {
        if (!module.dra || module.meta.deleting) { continue; }
        const Node* classes = module.dra->find("deviceClasses");
        for (std::size_t i = 0; classes != nullptr && i < classes->items().size(); ++i) {
            const Node& source = classes->items()[i];
            const auto [owner, first] = owners.emplace(source.get_string({"name"}), &module);
            if (!first) {
                scene.warn(
                    &module, fmt::format("spec.dra.deviceClasses[{}].name", i), "device-class-conflict",
                    fmt::format("DeviceClass {} is also one of Module {}", owner->first, owner->second->full_name()),
                    "DeviceClasses have no namespace; each Module takes it over from the other");
                continue;
            }
            out.push_back(device_class(module, source));
        }
        out.push_back(daemon_set(scene, module, *module.dra, role));
    }
}

}  // namespace kmm::render
