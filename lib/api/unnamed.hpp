// SPDX-License-Identifier: Apache-2.0
// Secrets, ConfigMaps, Namespaces and Pods of a repository that KMM never looks at: nothing of KMM names them.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "api/types.hpp"
#include "value/node.hpp"

namespace kmm::api {

/// Marks the findings from `begin` on, which are about the object `root` of that kind, as those of an object that may
/// matter to nobody: one that no server gave, of a kind that KMM needs by name only.
void mark_if_by_name(const value::Node& root, std::string_view kind, Diagnostics& diagnostics, std::size_t begin);

/// Whether findings about an object are to be marked so. A Pod that is on a node matters to what is planned there.
[[nodiscard]] inline bool is_by_name(const Secret& object) { return object.meta.uid.empty(); }
[[nodiscard]] inline bool is_by_name(const ConfigMap& object) { return object.meta.uid.empty(); }
[[nodiscard]] inline bool is_by_name(const Namespace& object) { return object.meta.uid.empty(); }
[[nodiscard]] inline bool is_by_name(const Pod& object) { return object.meta.uid.empty() && object.node_name.empty(); }
/// A DaemonSet or DeviceClass.
[[nodiscard]] inline bool is_by_name(const PluginObject& object) { return object.meta.uid.empty(); }
template <typename T>
[[nodiscard]] bool is_by_name(const T&) {
    return false;
}

/// One note in place of the marked findings about objects that nothing of KMM names, at the first of them. Without a
/// Module, and with recipes, whose charts may need anything, nothing is left out but what `is_found` says of: whoever
/// gives a Secret alone wants it to be checked. Names count whatever their namespace is, also those of ConfigMaps with
/// charts.
void fold_unnamed(const Objects& objects, Diagnostics& diagnostics,
                  const std::function<bool(const Diagnostic&)>& is_found = {});

}  // namespace kmm::api
