// SPDX-License-Identifier: Apache-2.0
#include "render/parts.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "plan/kmm/template.hpp"
#include "value/writer.hpp"

namespace kmm::render {

namespace {

using value::Node;

std::uint64_t fnv1a(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3U;
    }
    return hash;
}

Node reference_tree(std::string_view api_version, std::string_view kind, const std::string& name,
                    const std::string& uid) {
    return Node::mapping({{"apiVersion", api_version}, {"kind", kind}, {"name", name}, {"uid", uid}});
}

}  // namespace

void Scene::warn(const api::Module* module, std::string_view field, std::string code, std::string message,
                 std::string hint) {
    Diagnostic diagnostic;
    diagnostic.severity = Severity::warning;
    diagnostic.code = std::move(code);
    diagnostic.message =
        module == nullptr ? std::move(message) : fmt::format("Module {}: {}", module->full_name(), message);
    if (module != nullptr) {
        if (const auto place = module->places.find(field); place != module->places.end()) {
            diagnostic.position = place->second;
        } else if (!module->meta.origin.file.empty()) {
            diagnostic.position = module->meta.origin;
        }
    }
    diagnostic.hint = std::move(hint);
    findings.push_back(std::move(diagnostic));
}

const api::Module* Scene::find_module(std::string_view ns, std::string_view name) const {
    const auto& modules = objects.modules;
    const auto found = std::find_if(modules.begin(), modules.end(), [&](const api::Module& module) {
        return module.meta.namespace_ == ns && module.meta.name == name;
    });
    return found == modules.end() ? nullptr : &*found;
}

std::vector<std::string> Scene::finalizers(std::vector<std::string> names) const {
    if (options.finalizers == Finalizers::none) { names.clear(); }
    return names;
}

void sort_keys(Node& node) {
    for (auto& item : node.items()) { sort_keys(item); }
    auto& members = node.members();
    for (auto& member : members) { sort_keys(member.value); }
    const auto before = [](const value::Member& a, const value::Member& b) { return a.key < b.key; };
    if (!std::is_sorted(members.begin(), members.end(), before)) { std::sort(members.begin(), members.end(), before); }
}

Node in_key_order(Node node) {
    sort_keys(node);
    return node;
}

std::string tree_hash(const Node& node) { return std::to_string(fnv1a(value::to_json(in_key_order(node)))); }

std::string short_hash(std::string_view text) {
    constexpr std::string_view alphabet = "bcdfghjklmnpqrstvwxz2456789";
    std::uint64_t hash = fnv1a(text);
    std::string result;
    for (int i = 0; i < 5; ++i) {
        result += alphabet[hash % alphabet.size()];
        hash /= alphabet.size();
    }
    return result;
}

std::string shortened(const std::string& name, std::size_t length_max) {
    if (name.size() <= length_max) { return name; }
    std::string start = name.substr(0, length_max - 6);
    while (!start.empty() && (start.back() == '-' || start.back() == '.')) { start.pop_back(); }
    return fmt::format("{}-{}", start, short_hash(name));
}

Node mount(std::string_view name, std::string_view path, Access access) {
    Node node = Node::mapping({{"mountPath", path}, {"name", name}});
    if (access == Access::read_only) { node.set("readOnly", true); }
    return node;
}

Node host_path(std::string_view name, std::string_view path, std::string_view type) {
    return Node::mapping({{"hostPath", Node::mapping({{"path", path}, {"type", type}})}, {"name", name}});
}

Node env_field(std::string_view name, std::string_view path) {
    const Node source = Node::mapping({{"fieldRef", Node::mapping({{"fieldPath", path}})}});
    return Node::mapping({{"name", name}, {"valueFrom", source}});
}

Node annotation_volume(std::string_view name, std::string_view annotation, std::string_view file) {
    const Node field = Node::mapping({{"fieldPath", fmt::format("metadata.annotations['{}']", annotation)}});
    const Node items = Node::sequence({Node::mapping({{"fieldRef", field}, {"path", file}})});
    return Node::mapping({{"downwardAPI", Node::mapping({{"items", items}})}, {"name", name}});
}

Node secret_volume(const std::string& name, const std::string& secret, std::string_view key, std::string_view file) {
    Node source = Node::mapping({{"secretName", secret}});
    if (!key.empty()) { source.set("items", Node::sequence({Node::mapping({{"key", key}, {"path", file}})})); }
    return Node::mapping({{"name", name}, {"secret", std::move(source)}});
}

Node label_tree(const api::Labels& labels) {
    Node node = Node::mapping();
    for (const auto& [key, text] : labels) { node.set(key, text); }
    return node;
}

Node toleration_list(const std::vector<api::Toleration>& tolerations) {
    Node list = Node::sequence();
    for (const auto& toleration : tolerations) { list.push_back(api::encode(toleration)); }
    return list;
}

Node owner_reference(std::string_view api_version, std::string_view kind, const std::string& name,
                     const std::string& uid) {
    return reference_tree(api_version, kind, name, uid);
}

Node controller_reference(std::string_view api_version, std::string_view kind, const std::string& name,
                          const std::string& uid) {
    Node node = reference_tree(api_version, kind, name, uid);
    node.set("blockOwnerDeletion", true);
    node.set("controller", true);
    return node;
}

void set_pull_secret(Node& spec, const std::string& secret) {
    if (secret.empty()) { return; }
    spec.set("imagePullSecrets", Node::sequence({Node::mapping({{"name", secret}})}));
}

void set_tolerations(Node& spec, const std::vector<api::Toleration>& tolerations) {
    if (!tolerations.empty()) { spec.set("tolerations", toleration_list(tolerations)); }
}

void set_finalizers(Node& metadata, const std::vector<std::string>& finalizers) {
    if (!finalizers.empty()) { metadata.set("finalizers", Node::strings(finalizers)); }
}

void set_owner(Node& metadata, Node reference) {
    metadata.set("ownerReferences", Node::sequence({std::move(reference)}));
}

Node object(std::string_view api_version, std::string_view kind, Node metadata, Node spec) {
    return Node::mapping(
        {{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}});
}

}  // namespace kmm::render
