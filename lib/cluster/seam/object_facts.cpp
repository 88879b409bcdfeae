// SPDX-License-Identifier: Apache-2.0
#include "cluster/seam/object_facts.hpp"

namespace kmm::cluster {

std::string annotation_of(const value::Node& object, std::string_view key) {
    const value::Node* found = object.find_path({"metadata", "annotations", key});
    return found == nullptr ? "" : found->text();
}

std::int64_t number_of(const value::Node& object, std::initializer_list<std::string_view> path) {
    const value::Node* found = object.find_path(path);
    return found == nullptr ? 0 : found->as_int().value_or(0);
}

const value::Node* condition_of(const value::Node& object, std::string_view type) {
    const value::Node* conditions = object.find_path({"status", "conditions"});
    if (conditions == nullptr) return nullptr;
    for (const value::Node& each : conditions->items()) {
        if (each.get_string({"type"}) == type) return &each;
    }
    return nullptr;
}

bool is_ready(const value::Node& object) {
    const value::Node* ready = condition_of(object, "Ready");
    return ready != nullptr && ready->get_string({"status"}) == "True";
}

}  // namespace kmm::cluster
