// SPDX-License-Identifier: Apache-2.0
// Conditions on what runs, as 'apiserver >= v1.16.4'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/inventory/inventory.hpp"
#include "kubernetes/versions/observe.hpp"
#include "kubernetes/versions/version.hpp"

namespace kmm::kubernetes {

/// COMPONENT OPERATOR VERSION.
struct Requirement {
    std::string component;  ///< as Running::component, or "control-plane" for the three of k_components
    std::string op;         ///< one of >= > <= < == !=
    Version version;

    [[nodiscard]] std::string text() const;
};

/// Reads conditions that are joined with "and" or ','. Components: apiserver, controller-manager, scheduler (with or
/// without kube- in front), control-plane, kubelet, kube-proxy, etcd. '=' is '=='. A version of etcd without suffix is
/// that of every build, 3.6.5 that of 3.6.5-0. Errors: usage "bad-requirement" with the column.
[[nodiscard]] std::vector<Requirement> parse_requirements(std::string_view text);

/// What does not satisfy a requirement.
struct Offender {
    std::string requirement, component, node;
    std::string found;  ///< a version, or why it is not known
};

/// What came of it.
struct Verdict {
    std::size_t observed = 0;  ///< instances that were compared
    std::vector<Offender> offenders;
};

/// Every instance of the component must satisfy the requirement. One whose version is not known does not, nor does a
/// node without a Pod of etcd or kube-proxy where others have one; where no instance is found there is one offender
/// without a node. `inventory` is what was observed.
[[nodiscard]] Verdict evaluate(const std::vector<Requirement>& requirements, const Inventory& inventory,
                               const Observation& seen);

}  // namespace kmm::kubernetes
