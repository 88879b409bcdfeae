// SPDX-License-Identifier: Apache-2.0
#include "cluster/operator_signs.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kube/watch.hpp"
#include "value/object_stream.hpp"

namespace kmm::cluster {

namespace {

using value::Node;

constexpr const char* k_label_component = "app.kubernetes.io/component";

/// True if an item of the list at `path` has `text` as `key`.
bool has_item(const Node& object, const char* list, const char* key, const std::function<bool(const std::string&)>& is_wanted) {
    const Node* items = object.find_path({"metadata", list});
    if (items == nullptr) { return false; }
    return std::any_of(items->items().begin(), items->items().end(), [&](const Node& item) { return is_wanted(item.get_string({key})); });
}

}  // namespace

OperatorSigns look_for_operator(kube::Client& client) {
    OperatorSigns signs;
    kube::ListQuery query;
    query.label_selector = fmt::format("{}=kmm", k_label_part_of);
    for (const auto& pod : client.list_all(kube::resources::k_pods, query)) {
        if (pod.get_string({"metadata", "labels", k_label_component}) == "worker") { continue; }
        const std::string phase = pod.get_string({"status", "phase"});
        if (phase == "Succeeded" || phase == "Failed" || pod.find_path({"metadata", "deletionTimestamp"}) != nullptr) { continue; }
        signs.pods.push_back(kube::Key{pod.get_string({"metadata", "namespace"}), pod.get_string({"metadata", "name"})}.to_string());
    }
    std::sort(signs.pods.begin(), signs.pods.end());
    if (!signs.pods.empty()) { return signs; }
    static const value::Shape metadata_only{{"spec", "status"}, {}};
    for (const auto& config : client.list_all(kube::resources::k_node_modules_configs, {}, nullptr, &metadata_only)) {
        const bool foreign =
            has_item(config, "ownerReferences", "kind", [](const std::string& kind) { return kind == "Node"; }) ||
            has_item(config, "managedFields", "manager", [&](const std::string& manager) { return manager != client.options().field_manager; });
        if (!foreign) { continue; }
        signs.config = config.get_string({"metadata", "name"});
        break;
    }
    return signs;
}

ImageWords look_for_images(kube::Client& client, const kube::Key& module, const std::vector<std::string>& images,
                           std::chrono::milliseconds patience) {
    ImageWords words;
    if (!client.serves(kube::resources::k_module_images_configs)) { return words; }
    const auto look = [&](const std::optional<Node>& config) {
        words.lacking.clear();
        if (!config) { return true; }
        for (const auto& image : images) { words.lacking[image]; }
        if (const Node* states = config->find_path({"status", "imagesStates"}); states != nullptr) {
            for (const Node& state : states->items()) {
                const auto found = words.lacking.find(state.get_string({"image"}));
                if (found == words.lacking.end()) { continue; }
                found->second = state.get_string({"status"});
                if (found->second == "Exists") { words.lacking.erase(found); }
            }
        }
        // One image that is not there is enough to know how it ends.
        return words.lacking.empty() ||
               std::any_of(words.lacking.begin(), words.lacking.end(), [](const auto& entry) { return entry.second == "DoesNotExist"; });
    };
    static_cast<void>(kube::wait_for(client, kube::resources::k_module_images_configs, module, look, patience));
    return words;
}

}  // namespace kmm::cluster
