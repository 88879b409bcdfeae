// SPDX-License-Identifier: Apache-2.0
// What start kubernetes would do, for --dry-run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kubernetes/versions/catalogue.hpp"
#include "kubernetes/versions/observe.hpp"
#include "upgrade/drive_kubernetes/plan_runs.hpp"

namespace kmm::tool_upgrade {

struct PlannedUpgrade {
    const drive::KubernetesRequest& request;
    const kubernetes::Observation& seen;
    const std::vector<drive::Hop>& hops;  ///< not empty
    bool is_live = false;                 ///< of an API server
    std::optional<bool>
        has_policies;      ///< the API server has ValidatingAdmissionPolicy v1; nullopt if that is not known
    bool is_dump = false;  ///< of dumps: which server it will be is not known
    const kubernetes::Catalogue& catalogue;
    std::string etcd_tag;  ///< of the image that kubeadm-config names, "" if it is that of kubeadm
};

/// Prints every run with its stages, nodes, hooks and way back, and the freeze of applications. Errors: from_errno for
/// the directory of hooks.
void print_plan(cli::Context& context, const PlannedUpgrade& planned);

}  // namespace kmm::tool_upgrade
