// SPDX-License-Identifier: Apache-2.0
#include "api/canonical.hpp"

#include <algorithm>
#include <utility>

#include "api/codec.hpp"
#include "value/writer.hpp"

namespace kmm::api {

namespace {

/// A tree whose members are set only if they say something, and are written sorted.
class Canon {
public:
    Canon& text(const char* key, const std::string& value) {
        if (!value.empty()) { node_.set(key, value); }
        return *this;
    }
    Canon& flag(const char* key, bool value) {
        if (value) { node_.set(key, true); }
        return *this;
    }
    Canon& tree(const char* key, value::Node value) {
        if (!value.is_null() && !(value.is_mapping() && value.members().empty())) { node_.set(key, std::move(value)); }
        return *this;
    }
    /// For members whose presence alone says something.
    Canon& present(const char* key, std::optional<value::Node> value) {
        if (value) { node_.set(key, std::move(*value)); }
        return *this;
    }
    Canon& list(const char* key, const std::vector<std::string>& items) {
        if (!items.empty()) { node_.set(key, value::Node::strings(items)); }
        return *this;
    }
    template <typename Map>
    Canon& map(const char* key, const Map& entries) {
        value::Node node = value::Node::mapping();
        for (const auto& [name, text] : entries) { node.set(name, text); }
        return tree(key, std::move(node));
    }
    [[nodiscard]] value::Node take() { return std::move(node_); }

private:
    value::Node node_ = value::Node::mapping();
};

value::Node sorted_tree(value::Node node) {
    auto& members = node.members();
    std::sort(members.begin(), members.end(),
              [](const value::Member& a, const value::Member& b) { return a.key < b.key; });
    for (auto& member : members) { member.value = sorted_tree(std::move(member.value)); }
    for (auto& item : node.items()) { item = sorted_tree(std::move(item)); }
    return node;
}

template <typename T, typename Encode>
std::optional<value::Node> maybe(const std::optional<T>& value, Encode&& encode_one) {
    if (!value) { return std::nullopt; }
    return encode_one(*value);
}

template <typename T, typename Encode>
value::Node list_of(const std::vector<T>& items, Encode&& encode_one) {
    if (items.empty()) { return {}; }
    value::Node list = value::Node::sequence();
    for (const auto& item : items) { list.push_back(encode_one(item)); }
    return list;
}

value::Node canon_tls(const TlsOptions& tls) {
    return Canon().flag("insecure", tls.insecure).flag("insecureSkipTLSVerify", tls.insecure_skip_tls_verify).take();
}

value::Node canon_build(const Build& build) {
    return Canon()
        .text("dockerfile", build.dockerfile_config_map)
        .tree("args", list_of(build.build_args,
                              [](const BuildArg& arg) {
                                  return Canon().text("name", arg.name).text("value", arg.value).take();
                              }))
        .tree("baseImageRegistryTLS", canon_tls(build.base_image_registry_tls))
        .list("secrets", build.secrets)
        .text("kanikoTag", build.kaniko_tag)
        .map("selector", build.selector)
        .take();
}

value::Node canon_sign(const Sign& sign) {
    return Canon()
        .text("certSecret", sign.cert_secret)
        .text("keySecret", sign.key_secret)
        .text("unsignedImage", sign.unsigned_image)
        .tree("unsignedImageRegistryTLS", canon_tls(sign.unsigned_image_registry_tls))
        .list("filesToSign", sign.files_to_sign)
        .take();
}

value::Node canon_args(const ModprobeArgs& args) {
    return Canon().list("load", args.load).list("unload", args.unload).take();
}

value::Node canon_modprobe(const ModprobeSpec& modprobe) {
    return Canon()
        .text("moduleName", modprobe.module_name)
        .list("parameters", modprobe.parameters)
        .text("dirName", modprobe.dir_name)
        .present("args", maybe(modprobe.args, canon_args))
        .present("rawArgs", maybe(modprobe.raw_args, canon_args))
        .text("firmwarePath", modprobe.firmware_path)
        .text("modprobedDir", modprobe.modprobed_dir)
        .list("modulesLoadingOrder", modprobe.modules_loading_order)
        .take();
}

value::Node canon_mapping(const KernelMapping& mapping) {
    return Canon()
        .text("literal", mapping.literal)
        .text("regexp", mapping.regexp)
        .text("containerImage", mapping.container_image)
        .present("registryTLS", maybe(mapping.registry_tls, canon_tls))
        .present("inTreeModulesToRemove", maybe(mapping.in_tree_modules_to_remove, value::Node::strings))
        .text("inTreeModuleToRemove", mapping.in_tree_module_to_remove)
        .present("build", maybe(mapping.build, canon_build))
        .present("sign", maybe(mapping.sign, canon_sign))
        .take();
}

value::Node canon_loader(const ModuleLoader& loader) {
    const auto& container = loader.container;
    return Canon()
        .text("serviceAccountName", loader.service_account_name)
        .text("version", container.version)
        .text("containerImage", container.container_image)
        .text("imagePullPolicy", container.image_pull_policy)
        .tree("registryTLS", canon_tls(container.registry_tls))
        .present("inTreeModulesToRemove", maybe(container.in_tree_modules_to_remove, value::Node::strings))
        .text("inTreeModuleToRemove", container.in_tree_module_to_remove)
        .present("build", maybe(container.build, canon_build))
        .present("sign", maybe(container.sign, canon_sign))
        .tree("modprobe", canon_modprobe(container.modprobe))
        .tree("kernelMappings", list_of(container.kernel_mappings, canon_mapping))
        .take();
}

value::Node canon_module(const Module& module) {
    std::map<std::string, std::string> own;
    for (const auto& [key, text] : module.meta.annotations) {
        if (key.starts_with("kmmtools.dev/")) { own.emplace(key, text); }
    }
    return Canon()
        .map("annotations", own)
        .flag("deleting", module.meta.deleting)
        .map("selector", module.selector)
        .tree("tolerations",
              list_of(module.tolerations, [](const Toleration& toleration) { return encode(toleration); }))
        .text("imageRepoSecret", module.image_repo_secret)
        .present("moduleLoader", maybe(module.module_loader, canon_loader))
        .present("devicePlugin", module.device_plugin)
        .present("dra", module.dra)
        .take();
}

value::Node canon_node(const Node& node) {
    const auto taint = [](const Taint& one) {
        return Canon().text("key", one.key).text("value", one.value).text("effect", one.effect).take();
    };
    return Canon()
        .flag("deleting", node.meta.deleting)
        .map("labels", node.meta.labels)
        .tree("taints", list_of(node.taints, taint))
        .flag("unschedulable", node.unschedulable)
        .text("kernelVersion", node.kernel_version)
        .text("bootID", node.boot_id)
        .text("architecture", node.architecture)
        .text("osImage", node.os_image)
        .text("ready", node.ready.value_or(""))
        .take();
}

value::Node canon_config(const NodeModulesConfig& config) {
    const auto entry = [](const NodeModule& one) { return encode(one); };
    return Canon()
        .flag("deleting", config.meta.deleting)
        .map("labels", config.meta.labels)
        .tree("spec", list_of(config.spec, entry))
        .tree("status", list_of(config.status, entry))
        .take();
}

value::Node canon_hub(const ManagedClusterModule& hub) {
    return Canon()
        .tree("module", canon_module(hub.module))
        .text("spokeNamespace", hub.spoke_namespace)
        .map("selector", hub.selector)
        .take();
}

value::Node canon_pod(const Pod& pod) {
    Canon canon;
    canon.flag("deleting", pod.meta.deleting)
        .map("labels", pod.meta.labels)
        .text("node", pod.node_name)
        .text("phase", pod.phase);
    if (pod.worker_restarts != 0) { canon.tree("restarts", value::Node(pod.worker_restarts)); }
    return canon.take();
}

value::Node canon_builds(const ModuleBuildSignConfig& config) {
    const auto result = [](const ModuleBuildSignConfig::Result& one) {
        return Canon().text("image", one.image).text("action", one.action).text("status", one.status).take();
    };
    return Canon().tree("results", list_of(config.results, result)).take();
}

template <typename T, typename Encode>
void each(const char* kind, const std::vector<T>& objects, const CanonicalSink& sink, Encode&& encode_one) {
    for (const auto& object : objects) { sink(kind, object.meta, value::to_json(sorted_tree(encode_one(object)))); }
}

}  // namespace

void canonical(const Objects& objects, const CanonicalSink& sink) {
    each("ConfigMap", objects.config_maps, sink,
         [](const ConfigMap& map) { return Canon().map("data", map.data).take(); });
    each("CustomResourceDefinition", objects.custom_resource_definitions, sink,
         [](const CustomResourceDefinition& crd) { return Canon().list("specFields", crd.spec_fields).take(); });
    each("ManagedClusterModule", objects.managed_cluster_modules, sink, canon_hub);
    each("ManagedCluster", objects.managed_clusters, sink, [](const ManagedCluster& cluster) {
        return Canon()
            .flag("deleting", cluster.meta.deleting)
            .map("labels", cluster.meta.labels)
            .map("claims", cluster.claims)
            .take();
    });
    each("Module", objects.modules, sink, canon_module);
    each("ModuleBuildSignConfig", objects.module_build_sign_configs, sink, canon_builds);
    each("ModuleImagesConfig", objects.module_images_configs, sink,
         [](const ModuleImagesConfig& config) { return Canon().map("states", config.states).take(); });
    each("Namespace", objects.namespaces, sink, [](const Namespace& ns) {
        return Canon().flag("deleting", ns.meta.deleting).map("labels", ns.meta.labels).take();
    });
    each("Node", objects.nodes, sink, canon_node);
    each("NodeModulesConfig", objects.node_modules_configs, sink, canon_config);
    each("Pod", objects.pods, sink, canon_pod);
    each("PreflightValidation", objects.preflight_validations, sink, [](const PreflightValidation& preflight) {
        return Canon().text("kernelVersion", preflight.kernel_version).take();
    });
    each("Secret", objects.secrets, sink,
         [](const Secret& secret) { return Canon().text("type", secret.type).take(); });
}

}  // namespace kmm::api
