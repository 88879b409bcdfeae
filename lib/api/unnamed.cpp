// SPDX-License-Identifier: Apache-2.0
#include "api/unnamed.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

/// "Secret pull", of objects that something of KMM names.
using Names = std::set<std::string, std::less<>>;

constexpr std::string_view k_plugins = "DaemonSets and DeviceClasses";  ///< among Names: those of any name count

void add_build(const std::optional<Build>& build, Names& names) {
    if (!build) { return; }
    names.insert("ConfigMap " + build->dockerfile_config_map);
    for (const auto& secret : build->secrets) { names.insert("Secret " + secret); }
}

void add_sign(const std::optional<Sign>& sign, Names& names) {
    if (!sign) { return; }
    names.insert("Secret " + sign->cert_secret);
    names.insert("Secret " + sign->key_secret);
}

void add_module(const Module& module, Names& names) {
    names.insert("Namespace " + module.meta.namespace_);
    names.insert("Secret " + module.image_repo_secret);
    if (!module.module_loader) { return; }
    const auto& container = module.module_loader->container;
    add_build(container.build, names);
    add_sign(container.sign, names);
    for (const auto& mapping : container.kernel_mappings) {
        add_build(mapping.build, names);
        add_sign(mapping.sign, names);
    }
}

/// The namespace of a recipe and the ConfigMaps with charts that it names.
void add_recipe(const value::Node& node, Names& names) {
    constexpr std::string_view k_config_map = "cm://";
    const auto& text = node.text();
    if (text.starts_with(k_config_map)) { names.insert("ConfigMap " + text.substr(text.find_last_of('/') + 1)); }
    for (const auto& item : node.items()) { add_recipe(item, names); }
    for (const auto& member : node.members()) {
        if (member.key == "namespace") { names.insert("Namespace " + member.value.text()); }
        add_recipe(member.value, names);
    }
}

Names names_of(const Objects& objects) {
    Names names;
    for (const auto& module : objects.modules) { add_module(module, names); }
    for (const auto& module : objects.doubles) { add_module(module, names); }
    for (const auto& one : objects.managed_cluster_modules) {
        add_module(one.module, names);
        names.insert("Namespace " + one.spoke_namespace);
    }
    for (const auto& document : objects.recipes) { add_recipe(document.root, names); }
    if (!objects.modules.empty() || !objects.managed_cluster_modules.empty()) {
        names.insert(std::string(k_plugins));
    }
    return names;
}

/// `object` is "Secret drivers/pull" or "Namespace drivers".
bool is_named(const Names& names, std::string_view object) {
    const auto space = object.find(' ');
    const auto kind = object.substr(0, space);
    const auto name = object.substr(object.find_last_of(" /") + 1);
    // The operator's own configuration, and what its installation brings.
    if (object.find("kmm") != std::string_view::npos) { return true; }
    // Those that KMM would make have names of its own.
    if (kind == "DaemonSet" || kind == "DeviceClass") { return names.contains(k_plugins); }
    return names.contains(fmt::format("{} {}", kind, name));
}

}  // namespace

void mark_if_by_name(const value::Node& root, std::string_view kind, Diagnostics& diagnostics, std::size_t begin) {
    constexpr std::array<std::string_view, 4> kinds{"Secret", "ConfigMap", "Namespace", "Pod"};
    if (begin == diagnostics.size() || std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) { return; }
    const bool is_on_node = kind == "Pod" && !root.get_string({"spec", "nodeName"}).empty();
    if (is_on_node || !root.get_string({"metadata", "uid"}).empty()) { return; }
    const std::string ns = root.get_string({"metadata", "namespace"});
    const std::string name = root.get_string({"metadata", "name"});
    for (std::size_t i = begin; i < diagnostics.size(); ++i) {
        diagnostics[i].object_by_name = fmt::format("{} {}{}{}", kind, ns, ns.empty() ? "" : "/", name);
    }
}

void fold_unnamed(const Objects& objects, Diagnostics& diagnostics,
                  const std::function<bool(const Diagnostic&)>& is_found) {
    const bool folds_found_alone =
        !objects.recipes.empty() || (objects.modules.empty() && objects.managed_cluster_modules.empty());
    if (folds_found_alone && !is_found) { return; }
    const auto names = names_of(objects);
    const auto folds = [&](const Diagnostic& one) {
        return !one.object_by_name.empty() && one.severity != Severity::note &&
               !is_named(names, one.object_by_name) && (!folds_found_alone || is_found(one));
    };
    std::set<std::string> left_out;
    Diagnostic note;
    std::size_t count = 0;
    for (const auto& one : diagnostics) {
        if (!folds(one)) { continue; }
        if (count++ == 0) { note.position = one.position; }
        left_out.insert(base::escape(one.object_by_name));
    }
    if (count == 0) { return; }
    std::erase_if(diagnostics, folds);
    constexpr std::size_t k_named_max = 4;
    note.severity = Severity::note;
    note.code = "object-not-named";
    note.message = fmt::format("{} of {} that nothing of KMM names {} left out: {}",
                               count == 1 ? "1 fault" : fmt::format("{} faults", count),
                               left_out.size() == 1 ? "an object" : fmt::format("{} objects", left_out.size()),
                               count == 1 ? "was" : "were",
                               base::join_some(std::vector(left_out.begin(), left_out.end()), k_named_max));
    note.hint = "kubectl apply --dry-run=server -f FILE says what a server thinks of them";
    diagnostics.push_back(std::move(note));
}

}  // namespace kmm::api
