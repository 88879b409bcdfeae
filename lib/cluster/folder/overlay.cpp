// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/folder/documents.hpp"

namespace kmm::cluster {

namespace {

template <typename T>
void overlay_kind(std::vector<T>& base, std::vector<T>&& over) {
    if (over.empty()) { return; }
    if (base.empty()) {
        base = std::move(over);
        return;
    }
    const auto less = [](const T& a, const T& b) {
        return std::tie(a.meta.namespace_, a.meta.name) < std::tie(b.meta.namespace_, b.meta.name);
    };
    std::vector<T> result;
    result.reserve(base.size() + over.size());
    // set_union takes equal elements from the first range.
    std::set_union(std::make_move_iterator(over.begin()), std::make_move_iterator(over.end()),
                   std::make_move_iterator(base.begin()), std::make_move_iterator(base.end()),
                   std::back_inserter(result), less);
    base = std::move(result);
}

/// What was noted about objects that give way to others goes with them.
void overlay_marks(api::Objects& base, const api::Objects& over) {
    std::set<std::string> subjects;
    for (const auto& module : over.modules) { subjects.insert("Module " + module.full_name()); }
    for (const auto& object : over.managed_cluster_modules) {
        subjects.insert("ManagedClusterModule " + object.meta.name);
    }
    for (const auto& object : over.preflight_validations) { subjects.insert(object.kind + " " + object.meta.name); }
    std::erase_if(base.release_marks, [&](const api::ReleaseMark& mark) { return subjects.contains(mark.subject); });
    base.release_marks.insert(base.release_marks.end(), over.release_marks.begin(), over.release_marks.end());
}

}  // namespace

void overlay(api::Objects& base, api::Objects over) {
    overlay_marks(base, over);
    overlay_kind(base.nodes, std::move(over.nodes));
    overlay_kind(base.modules, std::move(over.modules));
    overlay_kind(base.node_modules_configs, std::move(over.node_modules_configs));
    overlay_kind(base.secrets, std::move(over.secrets));
    overlay_kind(base.config_maps, std::move(over.config_maps));
    overlay_kind(base.managed_cluster_modules, std::move(over.managed_cluster_modules));
    overlay_kind(base.managed_clusters, std::move(over.managed_clusters));
    overlay_kind(base.preflight_validations, std::move(over.preflight_validations));
    overlay_kind(base.namespaces, std::move(over.namespaces));
    overlay_kind(base.pods, std::move(over.pods));
    overlay_kind(base.custom_resource_definitions, std::move(over.custom_resource_definitions));
    overlay_kind(base.daemon_sets, std::move(over.daemon_sets));
    overlay_kind(base.device_classes, std::move(over.device_classes));
    overlay_kind(base.module_images_configs, std::move(over.module_images_configs));
    overlay_kind(base.module_build_sign_configs, std::move(over.module_build_sign_configs));
    overlay_kind(base.boot_module_configs, std::move(over.boot_module_configs));
    base.operator_configs.insert(base.operator_configs.end(), over.operator_configs.begin(),
                                 over.operator_configs.end());
    base.recipes.insert(base.recipes.end(), over.recipes.begin(), over.recipes.end());
    base.doubles.insert(base.doubles.end(), over.doubles.begin(), over.doubles.end());
    base.wrapped.insert(base.wrapped.end(), over.wrapped.begin(), over.wrapped.end());
}

}  // namespace kmm::cluster
