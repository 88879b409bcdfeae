// SPDX-License-Identifier: Apache-2.0
// Where the record of a Kubernetes upgrade and its cluster contradict each other.
#pragma once

#include <vector>

#include "kmm-upgrade/craft.hpp"
#include "kubernetes/versions/observe.hpp"

namespace kmm::tool_upgrade {

/// Nodes that run what `run` does not say of them. While a step is under way it says nothing; a node that has left the
/// cluster runs nothing.
[[nodiscard]] std::vector<Difference> differences(const upgrade::Run& run, const kubernetes::Observation& seen);

/// The same from the cluster of `run` as it is now, which is asked once, for a few seconds. Errors: those of the
/// cluster; config "other-cluster"; from_diagnostics.
[[nodiscard]] std::vector<Difference> look_for_differences(RecordAccess& record, const upgrade::Run& run);

}  // namespace kmm::tool_upgrade
