// SPDX-License-Identifier: Apache-2.0
// Driver containers that recipes have rolled out, as an update of the kernel sees them: which of them a node has, and
// what they need before and after it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "kube/client.hpp"
#include "upgrade/actor_parts/node_drivers.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/recipe/release.hpp"

namespace kmm::drive {

/// "NAMESPACE/NAME" of a driver's DaemonSet; copies for kernels have one name, that without the kernel's suffix.
[[nodiscard]] std::string driver_name(const upgrade::recipe::ReleaseObject& driver);

/// Drivers of `deployed` whose nodeSelector selects the node in its present kernel, sorted.
[[nodiscard]] std::vector<std::string> selected_drivers(std::span<const upgrade::recipe::Release> deployed,
                                                        const api::Node& node);

/// Errors "recipe-copy-missing", one for each driver that has a copy for the kernel of one of `nodes` and none for
/// `kernel`: those nodes would come back without it.
[[nodiscard]] Diagnostics missing_copies(std::span<const upgrade::recipe::Release> deployed,
                                         std::span<const api::Node> nodes, const std::string& kernel);

/// The drivers of the releases that are deployed when it is asked. `client` must outlive it.
class RecipeDrivers final : public NodeDrivers {
public:
    /// `space`: the namespace of the Secrets with releases.
    RecipeDrivers(kube::Client& client, std::string space)
        : client_(client), objects_(client), space_(std::move(space)) {}

    /// Of each recipe the one that is deployed. Errors: those of ReleaseStore.
    [[nodiscard]] std::vector<upgrade::recipe::Release> deployed();
    /// Drivers whose Pod on the node is Ready. None where the account may not list the Secrets.
    [[nodiscard]] std::map<std::string, std::string> serving(const std::string& node) override;
    /// The Pod of the copy for `kernel` must be Ready, in containers of this boot, and have logged what the annotation
    /// wait-for-logs asks for.
    [[nodiscard]] std::string problem(const std::string& node, const std::string& kernel, const std::string& driver,
                                      const std::string& before) override;

private:
    kube::Client& client_;
    Objects objects_;
    std::string space_;
};

}  // namespace kmm::drive
