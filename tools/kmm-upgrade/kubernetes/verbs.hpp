// SPDX-License-Identifier: Apache-2.0
// The command line of the verbs about Kubernetes.
#pragma once

#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/session/call.hpp"
#include "upgrade/drive_kubernetes/plan_runs.hpp"

namespace kmm::tool_upgrade {

/// versions, require, health, check kubernetes: they change nothing.
[[nodiscard]] std::vector<cli::Verb> kubernetes_reading_verbs();
[[nodiscard]] cli::Verb start_kubernetes_verb();
/// guard, unfreeze.
[[nodiscard]] std::vector<cli::Verb> guarding_verbs();

/// Who asks, and a new lineage.
void sign_kubernetes_request(Call& call, drive::KubernetesRequest& request);

}  // namespace kmm::tool_upgrade
