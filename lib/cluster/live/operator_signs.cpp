// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/operator_signs.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "kube/watch.hpp"
#include "value/object_stream.hpp"

namespace kmm::cluster {

namespace {

using value::Node;

constexpr const char* k_label_component = "app.kubernetes.io/component";
// Many operators made with the same tools bear these; they only keep the lists short.
constexpr const char* k_controller_selector = "control-plane in (controller,controller-manager)";
constexpr const char* k_name_selector = "app.kubernetes.io/name in (kmm,kmm-operator,kernel-module-management)";

bool is_over(const Node& pod) {
    const std::string phase = pod.get_string({"status", "phase"});
    return phase == "Succeeded" || phase == "Failed" || pod.find_path({"metadata", "deletionTimestamp"}) != nullptr;
}

/// True for the image of KMM's operator, whoever has built it; that of a hub loads nothing in its own cluster.
bool is_operator_image(std::string_view image) {
    image = image.substr(0, image.find('@'));
    image.remove_prefix(image.rfind('/') == std::string_view::npos ? 0 : image.rfind('/') + 1);
    image = image.substr(0, image.find(':'));
    return image.starts_with("kernel-module-management-") && image.ends_with("operator") &&
           image.find("hub") == std::string_view::npos;
}

/// By what a Pod is KMM's controller, "" if it is not.
std::string controller_sign(const Node& pod) {
    const std::string name = pod.get_string({"metadata", "name"});
    if (name.starts_with("kmm-operator-controller-")) { return "name " + name; }
    const Node* containers = pod.find_path({"spec", "containers"});
    for (const auto& container : containers == nullptr ? std::vector<Node>() : containers->items()) {
        const std::string image = container.get_string({"image"});
        if (is_operator_image(image)) { return "image " + image; }
    }
    return "";
}

/// True if an item of the list at `path` has `text` as `key`.
bool has_item(const Node& object, const char* list, const char* key,
              const std::function<bool(const std::string&)>& is_wanted) {
    const Node* items = object.find_path({"metadata", list});
    if (items == nullptr) { return false; }
    return std::any_of(items->items().begin(), items->items().end(),
                       [&](const Node& item) { return is_wanted(item.get_string({key})); });
}

}  // namespace

OperatorSigns look_for_operator(kube::Client& client) {
    OperatorSigns signs;
    const std::string part_of = fmt::format("{}=kmm", k_label_part_of);
    for (const auto& selector : {part_of, std::string(k_controller_selector), std::string(k_name_selector)}) {
        kube::ListQuery query;
        query.label_selector = selector;
        for (const auto& pod : client.list_all(kube::resources::k_pods, query)) {
            if (pod.get_string({"metadata", "labels", k_label_component}) == "worker" || is_over(pod)) { continue; }
            const std::string sign = selector == part_of ? "label " + part_of : controller_sign(pod);
            if (sign.empty()) { continue; }
            signs.pods.push_back(
                {kube::Key{pod.get_string({"metadata", "namespace"}), pod.get_string({"metadata", "name"})}.to_string(),
                 sign});
        }
        if (!signs.pods.empty()) { break; }
    }
    std::sort(signs.pods.begin(), signs.pods.end(),
              [](const OperatorPod& left, const OperatorPod& right) { return left.name < right.name; });
    if (!signs.pods.empty() || !client.serves(kube::resources::k_node_modules_configs)) { return signs; }
    static const value::Shape metadata_only{{"spec", "status"}, {}};
    for (const auto& config : client.list_all(kube::resources::k_node_modules_configs, {}, nullptr, &metadata_only)) {
        // Ours have the Node for an owner, too.
        const bool is_said = has_item(config, "managedFields", "manager", [](const std::string&) { return true; });
        const bool foreign =
            is_said
                ? has_item(config, "managedFields", "manager",
                           [&](const std::string& manager) { return manager != client.options().field_manager; })
                : has_item(config, "ownerReferences", "kind", [](const std::string& kind) { return kind == "Node"; });
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
        return words.lacking.empty() || std::any_of(words.lacking.begin(), words.lacking.end(),
                                                    [](const auto& entry) { return entry.second == "DoesNotExist"; });
    };
    static_cast<void>(kube::wait_for(client, kube::resources::k_module_images_configs, module, look, patience));
    return words;
}

}  // namespace kmm::cluster
