// SPDX-License-Identifier: Apache-2.0
// What KMM's hub makes of ManagedClusterModules for each cluster. Facts: KMM 12.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::render {

/// The claim in which a cluster says what its nodes run.
inline constexpr std::string_view k_kernel_claim = "kernel-versions.kmm.node.kubernetes.io";

/// One cluster as a hub knows it.
struct HubCluster {
    std::string name;                                 ///< also the namespace of its ManifestWorks
    std::optional<api::Labels> labels;                ///< nullopt: it has no ManagedCluster, and counts as selected
    std::optional<std::vector<std::string>> kernels;  ///< as the nodes report them; nullopt: nobody said
};

/// What one cluster gets of one ManagedClusterModule.
struct HubBundle {
    std::string cluster;
    value::Node module;         ///< for the cluster itself
    value::Node manifest_work;  ///< for the hub; holds `module`
};

struct HubBundles {
    std::vector<HubBundle> bundles;  ///< sorted by cluster, then name
    Diagnostics findings;            ///< warnings, sorted
};

/// The kernels of the claim's text, one a line, each once, in order.
[[nodiscard]] std::vector<std::string> claimed_kernels(std::string_view claim);

/// For each cluster that a ManagedClusterModule selects: its Module with one literal mapping a kernel, build and sign
/// left out. An image that one of the globs `missing_images` names holds the cluster's bundle back, as on the hub. A
/// cluster that cannot be served is left out with a finding; others go on. Both lists must be sorted by name. Finding
/// codes: hub-skipped, hub-no-mapping, hub-not-selected, hub-labels-unknown, hub-field-lost.
[[nodiscard]] HubBundles hub_bundles(const std::vector<api::ManagedClusterModule>& modules,
                                     const std::vector<HubCluster>& clusters,
                                     const std::vector<std::string>& missing_images);

}  // namespace kmm::render
