// SPDX-License-Identifier: Apache-2.0
// kmm-plan diff: the objects that KMM makes for device plugins and DRA drivers.
#pragma once

#include <string>
#include <vector>

#include "api/types.hpp"
#include "render/manifests.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// One object on both sides; null for one that is not there.
struct Pair {
    std::string kind, ns, name;  ///< ns: "" for kinds that have none
    value::Node observed, wanted;
    Position place;              ///< of the observed object, else of what it is made for

    /// "NAMESPACE/NAME", or "NAME".
    [[nodiscard]] std::string full_name() const { return ns.empty() ? name : ns + "/" + name; }
};

/// KMM's labels of an observed object, as far as the rendered one decides them.
[[nodiscard]] value::Node comparable_labels(const api::Labels& labels, const value::Node& rendered);
/// {"metadata": {"labels"}, "spec"}: the fields that are compared. `spec` may be nullptr.
[[nodiscard]] value::Node compared(value::Node labels, const value::Node* spec);

/// DaemonSets and DeviceClasses that KMM's labels mark as those of a Module that was read, against what is rendered. A
/// DaemonSet is compared with that of its Module, role and version, whatever its name; one of a former version stays as
/// long as `settled_nodes` (rendered Nodes with the labels they end up with) name it. A DeviceClass goes by its name.
/// Objects without those labels, or of Modules that were not read, are left alone. `ns`: only Modules of this
/// namespace, "" for all.
[[nodiscard]] std::vector<Pair> plugin_pairs(const api::Objects& objects, const render::Options& options,
                                             const std::vector<value::Node>& settled_nodes, const std::string& ns);

}  // namespace kmm::tool_plan
