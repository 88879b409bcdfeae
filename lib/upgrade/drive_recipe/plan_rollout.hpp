// SPDX-License-Identifier: Apache-2.0
// From a rendered recipe to a release, its review on the API server, and the run that brings or removes it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "recipe/plan/render.hpp"
#include "recipe/resource/resource.hpp"
#include "upgrade/drive_recipe/own_objects.hpp"
#include "upgrade/engine/run.hpp"
#include "upgrade/recipe/subject.hpp"

namespace kmm::drive {

/// The states of `rendered` in apply order, without owner references to SpecialResources: what a rollout made is
/// removed by a removal. Node labels are for the nodes that a resource of `all` selects. Errors: data "bad-gate" with
/// every annotation wait-for-logs that cannot be obeyed; "nothing-to-apply" if nothing was rendered. Builds that are
/// paired with drivers by the annotation driver-container-vendor are on demand, but for those of `update_vendor`, whose
/// images are known to be missing.
[[nodiscard]] std::vector<upgrade::recipe::State> states_of(const recipe::plan::RenderedRecipes& rendered,
                                                            std::span<const recipe::plan::SpecialResource> all,
                                                            const std::string& update_vendor = "");

/// Drivers would stay as they are although what their image is built from has changed since `previous`: an image that
/// has the same name is not built, or not pulled, a second time. Errors: data "image-not-renamed" with each driver.
void require_new_images(const upgrade::recipe::Release& now, const upgrade::recipe::Release& previous);

/// What would become of an object.
struct Judged {
    const upgrade::recipe::State* state = nullptr;
    const upgrade::recipe::ReleaseObject* object = nullptr;
    std::optional<Change> change;  ///< nullopt: only the rollout itself can ask, as its namespace or kind comes with it
};
/// Asks the server about every object, without changing anything. `is_upgrade`: a release is deployed. Errors: data
/// "kind-unknown" for a kind that the server lacks and the release does not bring; those of OwnObjects::apply.
[[nodiscard]] std::vector<Judged> review(const upgrade::recipe::Release& release, kube::Client& client,
                                         Objects& objects, OwnObjects& own, kube::Force force,
                                         bool is_upgrade);

/// Kernels whose copies are not obsolete: those that nodes run, and those that a person keeps; those of `all` copies
/// while a paused MachineConfigPool has no node, as a new one comes with the kernel that it was paused at. Lists nodes
/// and pools.
[[nodiscard]] std::set<std::string> needed_kernels(kube::Client& client, const upgrade::recipe::Subject& subject,
                                                   const std::vector<upgrade::recipe::Release>& all);
struct UncoveredNode {
    std::string name, kernel;
    bool is_left_out = false;  ///< it has a taint that nodes of recipes have not, and the drivers tolerate it
};
/// Nodes that states of `release` select and whose kernel it has no copy for, though it has copies for kernels. They
/// came, or were updated, after it was rendered, or have a taint. Lists the nodes.
[[nodiscard]] std::vector<UncoveredNode> uncovered_nodes(kube::Client& client, const upgrade::recipe::Release& release);

/// What a person asked for.
struct RecipeRequest : upgrade::Signature {
    upgrade::Options options;
    upgrade::recipe::Subject subject;
    /// Of each resource that is rolled out, from 1: those of one wave need those of waves before it only. Empty: one
    /// state after the other.
    std::map<std::string, std::int64_t> waves{};
};
/// The run that brings `now`, after `previous` (nullptr for none). It is a downgrade if there are `nodes`, whose
/// drivers are restarted one node after the other before their state is applied; then waves are left out, so that one
/// node at a time is tainted.
[[nodiscard]] upgrade::Run rollout_run(const RecipeRequest& request, const upgrade::recipe::Release& now,
                                       const upgrade::recipe::Release* previous,
                                       const std::vector<upgrade::recipe::DriverNode>& nodes = {});
/// The run that removes `everything`, the last state first.
[[nodiscard]] upgrade::Run removal_run(const RecipeRequest& request, const upgrade::recipe::Release& everything);

}  // namespace kmm::drive
