// SPDX-License-Identifier: Apache-2.0
// Kinds that only tell what a cluster does at the moment: Pods, DaemonSets, DeviceClasses and
// CustomResourceDefinitions.
#include <algorithm>
#include <map>
#include <string>

#include "api/decode.hpp"
#include "api/schema_check.hpp"

namespace kmm::api {

namespace {

/// How a container of a Pod ended that is not well. Without a message its exit code has to do.
std::string ending_message(const value::Node& ended) {
    std::string message = ended.get_string({"message"});
    const auto* code = ended.find("exitCode");
    if (message.empty() && code != nullptr && code->as_int()) {
        message = "exit code " + std::to_string(*code->as_int());
    }
    return message;
}

/// The same with Kubernetes' reason, where that says more than that it failed.
std::string last_ending(const value::Node& ended) {
    const std::string reason = ended.get_string({"reason"});
    const std::string message = ending_message(ended);
    if (reason.empty() || reason == "Error" || reason == "Completed") { return message; }
    return message.empty() ? reason : reason + ": " + message;
}

bool has_failed(const value::Node& ended) {
    const auto* code = ended.find("exitCode");
    return code != nullptr && code->as_int().value_or(0) != 0;
}

/// What of a container's status tells that it does not run as it should.
void add_container_problem(const value::Node& status, Pod& pod) {
    const std::string name = status.get_string({"name"});
    const value::Node* waiting = status.find_path({"state", "waiting"});
    const value::Node* ended = status.find_path({"state", "terminated"});
    if (waiting != nullptr && waiting->is_mapping()) {
        const std::string reason = waiting->get_string({"reason"});
        if (reason.empty() || reason == "PodInitializing" || reason == "ContainerCreating") { return; }
        std::string message = waiting->get_string({"message"});
        // What a container that is started again and again says of itself is how it ended the last time.
        if (const value::Node* last = status.find_path({"lastState", "terminated"});
            last != nullptr && last->is_mapping()) {
            if (std::string text = last_ending(*last); !text.empty()) {
                message = message.empty() ? text : message + "; last: " + text;
            }
        }
        pod.problems.push_back({name, reason, std::move(message)});
    } else if (ended != nullptr && ended->is_mapping()) {
        if (!has_failed(*ended)) { return; }
        pod.problems.push_back({name, ended->get_string({"reason"}), ending_message(*ended)});
    } else if (const value::Node* last = status.find_path({"lastState", "terminated"});
               last != nullptr && last->is_mapping() && has_failed(*last)) {
        // It runs between two failures: the kubelet has started it once more.
        pod.problems.push_back({name, last->get_string({"reason"}), ending_message(*last) + "; started again"});
    }
}

void add_problems(const value::Node& status, Pod& pod) {
    for (const auto* key : {"initContainerStatuses", "containerStatuses"}) {
        const value::Node* list = status.find(key);
        if (list == nullptr || !list->is_sequence()) { continue; }
        for (const auto& item : list->items()) { add_container_problem(item, pod); }
    }
    if (const value::Node* conditions = status.find("conditions"); conditions != nullptr && conditions->is_sequence()) {
        for (const auto& item : conditions->items()) {
            if (item.get_string({"type"}) != "PodScheduled" || item.get_string({"status"}) != "False") { continue; }
            pod.problems.push_back({"", item.get_string({"reason"}), item.get_string({"message"})});
        }
    }
    if ((pod.phase == "Failed" || pod.phase == "Unknown") && pod.problems.empty()) {
        pod.problems.push_back({"", status.get_string({"reason"}), status.get_string({"message"})});
    }
}

}  // namespace

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
        if (container.string("name") == "worker") {
            pod.worker_restarts = container.integer("restartCount").value_or(0);
        }
    }
    add_problems(status->node(), pod);
    return pod;
}

namespace {

/// The images that spec names, each with the state that status has for it.
std::map<std::string, std::string> image_states(const value::Node& root) {
    std::map<std::string, std::string> states;
    const auto each = [&](std::initializer_list<std::string_view> path, const char* state) {
        const value::Node* items = root.find_path(path);
        if (items == nullptr || !items->is_sequence()) { return; }
        for (const auto& item : items->items()) {
            std::string text = state == nullptr ? std::string() : item.get_string({state});
            if (const std::string image = item.get_string({"image"}); !image.empty()) {
                states[image] = std::move(text);
            }
        }
    };
    each({"spec", "images"}, nullptr);
    each({"status", "imagesStates"}, "status");
    return states;
}

}  // namespace

ModuleImagesConfig decode_module_images_config(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    ObjectMeta meta = decode_meta(fields, Residence::namespaced);
    check_object(scope, root);
    return ModuleImagesConfig{std::move(meta), image_states(root)};
}

ModuleBuildSignConfig decode_module_build_sign_config(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    ModuleBuildSignConfig object;
    object.meta = decode_meta(fields, Residence::namespaced);
    check_object(scope, root);
    const value::Node* items = root.find_path({"status", "images"});
    if (items == nullptr || !items->is_sequence()) { return object; }
    for (const auto& item : items->items()) {
        object.results.push_back(
            {item.get_string({"image"}), item.get_string({"action"}), item.get_string({"status"})});
    }
    return object;
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
