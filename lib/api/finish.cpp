// SPDX-License-Identifier: Apache-2.0
// What holds across documents: objects in order, each once, and one note where many documents give the same.
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/unnamed.hpp"
#include "base/counted.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

/// One note for all objects that were left out for one reason, at the first of them: charts and repositories are full
/// of such. `code` is that of the notes, whose messages are names of kinds.
void fold_notes(Diagnostics& diagnostics, std::string_view code, std::string_view reason) {
    // A note that was folded before is a sentence, not the name of a kind.
    const auto folds = [&](const Diagnostic& one) {
        return one.code == code && one.severity == Severity::note && one.message.find(' ') == std::string::npos;
    };
    std::map<std::string, std::size_t> counts;
    Diagnostic* first = nullptr;
    for (auto& one : diagnostics) {
        if (!folds(one)) { continue; }
        ++counts[one.message];  // the kind's name, see note_foreign_kind
        if (first == nullptr) { first = &one; }
        if (first->hint.empty()) { first->hint = one.hint; }
    }
    if (first == nullptr) { return; }
    std::vector<std::string> kinds;
    std::size_t total = 0;
    for (const auto& [kind, count] : counts) {
        total += count;
        kinds.push_back(count == 1 ? kind : fmt::format("{} ({})", kind, count));
    }
    constexpr std::size_t k_named_max = 12;
    const std::size_t others = kinds.size() > k_named_max ? kinds.size() - k_named_max : 0;
    kinds.resize(kinds.size() - others);
    Diagnostic note = *first;
    note.message = fmt::format("{} {} {} not read: {}{}", base::counted(total, "object"), reason,
                               total == 1 ? "was" : "were", base::join(kinds, ", "),
                               others == 0 ? "" : fmt::format(" and {} other kinds", others));
    std::erase_if(diagnostics, [&](const Diagnostic& one) { return folds(one); });
    diagnostics.push_back(std::move(note));
}

/// Of many findings about one field of served objects the first stays, with their number.
void fold_unread(Diagnostics& diagnostics) {
    const auto folds = [](const Diagnostic& one) {
        return one.code == "unknown-field" && one.severity == Severity::note;
    };
    const auto key_of = [](const Diagnostic& one) {
        return std::pair(one.position ? one.position->file : std::string(), one.message);
    };
    std::map<std::pair<std::string, std::string>, std::size_t> counts;
    for (const auto& one : diagnostics) {
        if (folds(one)) { ++counts[key_of(one)]; }
    }
    std::set<std::pair<std::string, std::string>> told;
    std::erase_if(diagnostics, [&](const Diagnostic& one) { return folds(one) && !told.insert(key_of(one)).second; });
    for (auto& one : diagnostics) {
        if (!folds(one)) { continue; }
        const std::size_t count = counts[key_of(one)];
        if (count > 1) { one.message += fmt::format(": {} of them in this file", count); }
    }
}

auto sort_key(const ObjectMeta& meta) { return std::tie(meta.namespace_, meta.name, meta.origin); }

/// Of a list that holds two kinds, which one an object is.
template <typename T>
std::string_view kind_of(const T& object) {
    if constexpr (requires { object.kind; }) { return object.kind; }
    return {};
}

/// Whether both are what a server gave of one object, at two times: must-gather writes Pods and Namespaces twice. Of
/// what a fleet has many of the time is not read.
template <typename T>
bool is_same_served(const T& one, const T& other) {
    if constexpr (std::is_same_v<T, Node> || std::is_same_v<T, NodeModulesConfig>) { return false; }
    return !one.meta.uid.empty() && one.meta.uid == other.meta.uid && one.meta.resource_version != 0 &&
           other.meta.resource_version != 0;
}

/// Repositories of operators carry a definition for each way of installing, and patches of it: none is at fault, and
/// the fields of all are known.
void join_definition(CustomResourceDefinition& kept, const CustomResourceDefinition& other) {
    std::vector<std::string> fields;
    std::set_union(kept.spec_fields.begin(), kept.spec_fields.end(), other.spec_fields.begin(),
                   other.spec_fields.end(), std::back_inserter(fields));
    kept.spec_fields = std::move(fields);
}

/// Each overlay of a repository may have the Namespace of its objects: it is at fault where they differ.
bool is_same_declared(const Namespace& kept, const Namespace& other) {
    return kept.meta.origin.file != other.meta.origin.file && kept.meta.uid.empty() && other.meta.uid.empty() &&
           kept.meta.labels == other.meta.labels && kept.meta.annotations == other.meta.annotations;
}

/// Of one object that a server gave twice the later counts. `doubles`, if given, gets the objects that are left out.
template <typename T>
void sort_and_check(std::vector<T>& objects, std::string_view kind, Diagnostics& diagnostics,
                    std::vector<T>* doubles = nullptr) {
    // Servers and kubectl list objects in this order: nothing is to be moved then.
    const auto not_before = [](const T& a, const T& b) {
        return std::tie(a.meta.namespace_, a.meta.name) >= std::tie(b.meta.namespace_, b.meta.name);
    };
    if (std::adjacent_find(objects.begin(), objects.end(), not_before) == objects.end()) { return; }
    std::stable_sort(objects.begin(), objects.end(),
                     [](const T& a, const T& b) { return sort_key(a.meta) < sort_key(b.meta); });
    std::vector<T> kept;
    kept.reserve(objects.size());
    for (auto& object : objects) {
        const bool same = !kept.empty() && !object.meta.name.empty() && kept.back().meta.name == object.meta.name &&
                          kept.back().meta.namespace_ == object.meta.namespace_ &&
                          kind_of(kept.back()) == kind_of(object);
        if (!same) {
            kept.push_back(std::move(object));
            continue;
        }
        if constexpr (std::is_same_v<T, CustomResourceDefinition>) {
            join_definition(kept.back(), object);
            continue;
        }
        if constexpr (std::is_same_v<T, Namespace>) {
            if (is_same_declared(kept.back(), object)) { continue; }
        }
        if (is_same_served(kept.back(), object)) {
            if (object.meta.resource_version > kept.back().meta.resource_version) { kept.back() = std::move(object); }
            continue;
        }
        Diagnostic diagnostic;
        diagnostic.code = "duplicate-object";
        diagnostic.message = fmt::format("{} {} is already defined at {}", kind,
                                         base::escape(object.meta.full_name()),
                                         kept.back().meta.origin.to_string());
        diagnostic.position = object.meta.origin;
        diagnostic.hint = "remove one of the two";
        if (is_by_name(object) && is_by_name(kept.back())) {
            diagnostic.object_by_name = fmt::format("{} {}", kind, object.meta.full_name());
        }
        diagnostics.push_back(std::move(diagnostic));
        if (doubles != nullptr) { doubles->push_back(std::move(object)); }
    }
    objects = std::move(kept);
}

}  // namespace

void finish(Objects& objects, Diagnostics& diagnostics) {
    fold_notes(diagnostics, "unknown-kind", "of kinds that KMM does not use");
    fold_notes(diagnostics, "missing-field", "without a namespace or name");
    fold_unread(diagnostics);
    sort_and_check(objects.nodes, "Node", diagnostics);
    sort_and_check(objects.modules, "Module", diagnostics, &objects.doubles);
    sort_and_check(objects.node_modules_configs, "NodeModulesConfig", diagnostics);
    sort_and_check(objects.secrets, "Secret", diagnostics);
    sort_and_check(objects.config_maps, "ConfigMap", diagnostics);
    sort_and_check(objects.managed_cluster_modules, "ManagedClusterModule", diagnostics);
    sort_and_check(objects.managed_clusters, "ManagedCluster", diagnostics);
    sort_and_check(objects.preflight_validations, "PreflightValidation", diagnostics);
    sort_and_check(objects.namespaces, "Namespace", diagnostics);
    sort_and_check(objects.pods, "Pod", diagnostics);
    sort_and_check(objects.custom_resource_definitions, "CustomResourceDefinition", diagnostics);
    sort_and_check(objects.daemon_sets, "DaemonSet", diagnostics);
    sort_and_check(objects.device_classes, "DeviceClass", diagnostics);
    sort_and_check(objects.module_images_configs, "ModuleImagesConfig", diagnostics);
    sort_and_check(objects.module_build_sign_configs, "ModuleBuildSignConfig", diagnostics);
    sort_and_check(objects.boot_module_configs, "BootModuleConfig", diagnostics);
    fold_unnamed(objects, diagnostics);
}

}  // namespace kmm::api
