// SPDX-License-Identifier: Apache-2.0
// Kinds that only tell what a cluster does at the moment: Pods, DaemonSets, DeviceClasses and
// CustomResourceDefinitions.
#include <algorithm>

#include "api/decode.hpp"

namespace kmm::api {

Pod decode_pod(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    Pod pod;
    pod.meta = decode_meta(fields, Residence::namespaced);
    if (auto spec = fields.child("spec")) { pod.node_name = spec->string("nodeName"); }
    auto status = fields.child("status");
    if (!status) { return pod; }
    pod.phase = status->string("phase");
    for (const auto& item : status->items("containerStatuses")) {
        Fields container(scope, *item.node, item.path);
        if (container.string("name") == "worker") { pod.worker_restarts = container.integer("restartCount").value_or(0); }
    }
    return pod;
}

namespace {

PluginObject decode_plugin_object(Scope& scope, const value::Node& root, Residence residence) {
    Fields fields(scope, root, "");
    PluginObject object;
    object.meta = decode_meta(fields, residence);
    if (const value::Node* spec = fields.get("spec"); spec != nullptr) { object.spec = *spec; }
    return object;
}

}  // namespace

PluginObject decode_daemon_set(Scope& scope, const value::Node& root) {
    return decode_plugin_object(scope, root, Residence::namespaced);
}

PluginObject decode_device_class(Scope& scope, const value::Node& root) {
    return decode_plugin_object(scope, root, Residence::cluster);
}

CustomResourceDefinition decode_custom_resource_definition(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    CustomResourceDefinition definition;
    definition.meta = decode_meta(fields, Residence::cluster);
    const value::Node* versions = root.find_path({"spec", "versions"});
    if (versions == nullptr || !versions->is_sequence()) { return definition; }
    for (const auto& version : versions->items()) {
        const value::Node* members =
            version.find_path({"schema", "openAPIV3Schema", "properties", "spec", "properties"});
        if (members == nullptr || !members->is_mapping()) { continue; }
        for (const auto& member : members->members()) { definition.spec_fields.push_back(member.key); }
    }
    std::sort(definition.spec_fields.begin(), definition.spec_fields.end());
    definition.spec_fields.erase(std::unique(definition.spec_fields.begin(), definition.spec_fields.end()),
                                 definition.spec_fields.end());
    return definition;
}

}  // namespace kmm::api
