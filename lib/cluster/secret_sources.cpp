// SPDX-License-Identifier: Apache-2.0
#include "cluster/secret_sources.hpp"

#include <utility>

#include "base/error.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

namespace {

constexpr std::string_view k_sealed = "SealedSecret";
constexpr std::string_view k_external = "ExternalSecret";

/// The Secret that is made of one object; null if none is.
value::Node secret_of(const value::Node& object) {
    const std::string kind = object.get_string({"kind"});
    const std::string group = object.get_string({"apiVersion"});
    const bool is_sealed = kind == k_sealed && group.starts_with("bitnami.com/");
    const bool is_external = kind == k_external && group.starts_with("external-secrets.io/");
    if (!is_sealed && !is_external) { return {}; }
    std::string name = is_external ? object.get_string({"spec", "target", "name"}) : "";
    if (name.empty()) { name = object.get_string({"metadata", "name"}); }
    if (name.empty()) { return {}; }
    auto data = value::Node::mapping();
    const auto* sealed = is_sealed ? object.find_path({"spec", "encryptedData"}) : nullptr;
    if (sealed != nullptr && sealed->is_mapping()) {
        for (const auto& member : sealed->members()) { data.set(member.key, std::string(unknown_text(member.key))); }
    }
    const auto type = is_sealed ? object.get_string({"spec", "template", "type"})
                                : object.get_string({"spec", "target", "template", "type"});
    auto secret = value::Node::mapping({{"apiVersion", "v1"}, {"kind", "Secret"}, {"type", type}});
    const std::string ns = object.get_string({"metadata", "namespace"});
    secret.set("metadata", value::Node::mapping({{"name", name}, {"namespace", ns}}));
    secret.set("data", std::move(data));
    secret.set_mark(object.mark());
    return secret;
}

}  // namespace

std::string_view unknown_text(std::string_view key) {
    return key == ".dockerconfigjson" || key == ".dockercfg" ? "e30=" : "";  // {}
}

bool may_hold_secret_sources(std::string_view front) {
    return front.find(k_sealed) != std::string_view::npos || front.find(k_external) != std::string_view::npos;
}

std::vector<value::Document> secrets_made_of(std::string_view text, const std::string& file) {
    std::vector<value::Document> made;
    Diagnostics faults;
    for (const auto& document : value::read_any(text, file, faults)) {
        const auto add = [&](const value::Node& object) {
            if (!object.is_mapping()) { return; }
            auto secret = secret_of(object);
            if (!secret.is_mapping()) { return; }
            value::Document one;
            one.file = file;
            one.root = std::move(secret);
            made.push_back(std::move(one));
        };
        add(document.root);
        const auto* items = document.root.is_mapping() ? document.root.find("items") : nullptr;
        if (items == nullptr || !items->is_sequence()) { continue; }
        for (const auto& item : items->items()) { add(item); }
    }
    return made;
}

}  // namespace kmm::cluster
