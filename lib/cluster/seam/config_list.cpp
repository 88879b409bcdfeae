// SPDX-License-Identifier: Apache-2.0
#include "cluster/seam/config_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::cluster {

std::optional<std::string> label_of(const value::Node& root, std::string_view key) {
    const auto* node = root.find_path({"metadata", "labels", key});
    if (node == nullptr) return std::nullopt;
    return node->text();
}

std::string shown_label(const std::optional<std::string>& value) {
    return value ? fmt::format("'{}'", base::escape(*value)) : "no label";
}

std::optional<value::Node> changed_list(const value::Node& root, std::string_view part, const std::string& ns,
                                        const std::string& name, const std::optional<api::NodeModule>& wanted) {
    value::Node list = value::Node::sequence();
    if (const auto* old = root.find_path({part, "modules"}); old != nullptr && old->is_sequence()) list = *old;
    auto& items = list.items();
    const auto at = std::find_if(items.begin(), items.end(), [&](const value::Node& item) {
        return item.get_string({"namespace"}) == ns && item.get_string({"name"}) == name;
    });
    if (!wanted) {
        if (at == items.end()) return std::nullopt;
        items.erase(at);
        return list;
    }
    const auto encoded = api::encode(*wanted);
    if (at == items.end()) {
        items.push_back(encoded);
        return list;
    }
    if (at->same_value(encoded)) return std::nullopt;
    try {
        if (api::decode_node_module(*at) == *wanted) return std::nullopt;
    } catch (const Error&) {
        // an entry that cannot be read is replaced
    }
    *at = encoded;
    return list;
}

bool has_entry(const value::Node& root, std::string_view part, const std::string& ns, const std::string& name) {
    const auto* list = root.find_path({part, "modules"});
    if (list == nullptr) return false;
    return std::any_of(list->items().begin(), list->items().end(), [&](const value::Node& item) {
        return item.get_string({"namespace"}) == ns && item.get_string({"name"}) == name;
    });
}

std::vector<std::pair<std::string, std::optional<std::string>>> config_label_changes(const value::Node& root,
                                                                                     const std::string& ns,
                                                                                     const std::string& name,
                                                                                     bool in_spec, bool in_status) {
    std::vector<std::pair<std::string, std::optional<std::string>>> changes;
    const auto follow = [&](std::string key, bool wanted, bool keep) {
        const bool present = label_of(root, key).has_value();
        if (wanted && !present) changes.emplace_back(std::move(key), "");
        else if (!wanted && !keep && present) changes.emplace_back(std::move(key), std::nullopt);
    };
    follow(api::label_module_configured(ns, name), in_spec, false);
    follow(api::label_module_in_use(ns, name), in_spec, in_status);
    return changes;
}

}  // namespace kmm::cluster
