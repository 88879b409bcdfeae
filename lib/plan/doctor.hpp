// SPDX-License-Identifier: Apache-2.0
// What upgrades and operators leave behind in a cluster, and how it is mended.
#pragma once

#include <set>
#include <string>

#include "api/types.hpp"
#include "base/error.hpp"

namespace kmm::plan {

/// What the record of kmm-upgrade has to do with: nothing of it is a finding.
struct Recorded {
    std::string cordon_owner;        ///< how the recorded run signs its cordons, "" without a run that goes on
    std::set<std::string> cordoned;  ///< nodes it has cordoned
};

/// Everything that does not go away by itself; the hint of each finding is the command that mends it, or says who can.
/// Warnings: version-labels-stuck, label-key-leftover, cordon-loses-version, node-missing (as a plan has them); label-left (of
/// a Module that is gone), cordon-left (by a kmm-upgrade that is not at work), deletion-stuck (finalizers),
/// worker-pod-left (of a node that is gone). Notes: cordon-foreign. Sorted by code, then object. O(plan).
[[nodiscard]] Diagnostics examine(const api::Objects& objects, const Recorded& recorded);

}  // namespace kmm::plan
