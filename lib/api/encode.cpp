// SPDX-License-Identifier: Apache-2.0
// Typed objects to trees. Keys in alphabetical order, as KMM's YAML has them.
#include "api/codec.hpp"
#include "api/labels.hpp"

namespace kmm::api {

namespace {

void set_if(value::Node& node, const char* key, const std::string& text) {
    if (!text.empty()) { node.set(key, text); }
}

void set_if(value::Node& node, const char* key, const std::vector<std::string>& items) {
    if (!items.empty()) { node.set(key, value::Node::strings(items)); }
}

value::Node encode_args(const ModprobeArgs& args) {
    value::Node node = value::Node::mapping();
    set_if(node, "load", args.load);
    set_if(node, "unload", args.unload);
    return node;
}

value::Node encode_modprobe(const ModprobeSpec& modprobe) {
    value::Node node = value::Node::mapping();
    if (modprobe.args) { node.set("args", encode_args(*modprobe.args)); }
    set_if(node, "dirName", modprobe.dir_name);
    set_if(node, "firmwarePath", modprobe.firmware_path);
    set_if(node, "moduleName", modprobe.module_name);
    set_if(node, "modprobedDir", modprobe.modprobed_dir);
    set_if(node, "modulesLoadingOrder", modprobe.modules_loading_order);
    set_if(node, "parameters", modprobe.parameters);
    if (modprobe.raw_args) { node.set("rawArgs", encode_args(*modprobe.raw_args)); }
    return node;
}

value::Node encode_map(const Labels& map) {
    value::Node node = value::Node::mapping();
    for (const auto& [key, text] : map) { node.set(key, text); }
    return node;
}

value::Node encode_entries(const std::vector<NodeModule>& entries) {
    value::Node modules = value::Node::sequence();
    for (const auto& entry : entries) { modules.push_back(encode(entry)); }
    value::Node node = value::Node::mapping();
    node.set("modules", std::move(modules));
    return node;
}

}  // namespace

value::Node encode(const ModuleConfig& config) {
    value::Node node = value::Node::mapping();
    node.set("containerImage", config.container_image);
    node.set("imagePullPolicy", config.image_pull_policy);
    set_if(node, "inTreeModuleToRemove", config.in_tree_module_to_remove);
    set_if(node, "inTreeModulesToRemove", config.in_tree_modules_to_remove);
    node.set("insecurePull", config.insecure_pull);
    node.set("kernelVersion", config.kernel_version);
    node.set("modprobe", encode_modprobe(config.modprobe));
    return node;
}

value::Node encode(const Toleration& toleration) {
    value::Node node = value::Node::mapping();
    set_if(node, "effect", toleration.effect);
    set_if(node, "key", toleration.key);
    set_if(node, "operator", toleration.operator_);
    if (toleration.toleration_seconds) { node.set("tolerationSeconds", *toleration.toleration_seconds); }
    set_if(node, "value", toleration.value);
    return node;
}

value::Node encode(const NodeModule& entry) {
    value::Node node = value::Node::mapping();
    set_if(node, "bootId", entry.boot_id);
    node.set("config", encode(*entry.config));
    if (!entry.image_repo_secret.empty()) {
        node.set("imageRepoSecret", value::Node::mapping({{"name", entry.image_repo_secret}}));
    }
    node.set("name", entry.name);
    node.set("namespace", entry.namespace_);
    node.set("serviceAccountName", entry.service_account_name);
    if (!entry.tolerations->empty()) {
        value::Node list = value::Node::sequence();
        for (const auto& toleration : *entry.tolerations) { list.push_back(encode(toleration)); }
        node.set("tolerations", std::move(list));
    }
    set_if(node, "version", entry.version);
    return node;
}

value::Node encode(const NodeModulesConfig& object) {
    value::Node metadata = value::Node::mapping();
    if (!object.meta.annotations.empty()) { metadata.set("annotations", encode_map(object.meta.annotations)); }
    set_if(metadata, "finalizers", object.meta.finalizers);
    if (!object.meta.labels.empty()) { metadata.set("labels", encode_map(object.meta.labels)); }
    metadata.set("name", object.meta.name);
    set_if(metadata, "uid", object.meta.uid);
    value::Node node = value::Node::mapping();
    node.set("apiVersion", k_group_version);
    node.set("kind", "NodeModulesConfig");
    node.set("metadata", std::move(metadata));
    node.set("spec", encode_entries(object.spec));
    if (!object.status.empty()) { node.set("status", encode_entries(object.status)); }
    return node;
}

}  // namespace kmm::api
