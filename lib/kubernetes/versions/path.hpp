// SPDX-License-Identifier: Apache-2.0
// The way from the versions that run to a target, minor by minor, within the skew that Kubernetes supports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kubernetes/versions/catalogue.hpp"
#include "kubernetes/versions/observe.hpp"
#include "kubernetes/versions/version.hpp"

namespace kmm::kubernetes {

/// One step: every control plane, or every kubelet that is older, is brought to `version`.
struct Step {
    enum class Part { control_planes, kubelets } part = Part::control_planes;
    Version version;
    friend bool operator==(const Step&, const Step&) = default;
};

/// Either `steps`, empty if the target is already there, or a `problem`.
struct Path {
    std::vector<Step> steps;
    std::string problem;  ///< why there is no way, "" with steps
    std::string hint;
};

/// How many minors a kubelet of that version may be older than the API servers: 3, below v1.25 2.
[[nodiscard]] std::int64_t kubelet_skew_max(const Version& kubelet) noexcept;

/// The lowest and the highest version of a part of the cluster.
struct VersionRange {
    Version lowest, highest;
};

/// The way with the fewest steps, through the highest patch of each minor where several would do. Kubelets follow when
/// the next step of the control planes would leave the oldest one too far behind, and at the end. Where a control plane
/// runs a higher version than the target, the way goes back: the target must be in downgrade_to of each such version,
/// and kubelets go first. What is at the target already stays. The target must be in the catalogue. O(versions
/// squared).
[[nodiscard]] Path find_path(const Catalogue& catalogue, const VersionRange& control_planes,
                             const VersionRange& kubelets, const Version& target);
/// From what runs. `seen` has no faults.
[[nodiscard]] Path find_path(const Catalogue& catalogue, const Observation& seen, const Version& target);

/// "control planes v1.34.4, kubelets v1.34.4".
[[nodiscard]] std::string to_string(const Step& step);

}  // namespace kmm::kubernetes
