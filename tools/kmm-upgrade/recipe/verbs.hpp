// SPDX-License-Identifier: Apache-2.0
// The command line of the verbs about recipes.
#pragma once

#include "cli/app.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"

namespace kmm::tool_upgrade {

[[nodiscard]] cli::Verb start_recipe_verb();
[[nodiscard]] cli::Verb remove_recipe_verb();

Exit run_start_recipe(const cli::Args& args, cli::Context& context);
Exit run_remove_recipe(const cli::Args& args, cli::Context& context);

/// Who asks, a new lineage, and the options that both verbs have. Errors: usage "bad-value".
[[nodiscard]] drive::RecipeRequest recipe_request(Call& call, const std::string& name);
/// The API server that is open. Errors: usage "recipe-needs-server" for a directory cluster.
[[nodiscard]] cluster::KubeStore& recipe_server(Access& access);
/// Asks for the rights of a run about a recipe, then, to change something, takes the Lease. Errors: those of
/// ClusterAccess::secure.
void secure_recipe(Access& access, const upgrade::Options& options, const upgrade::recipe::Subject& subject,
                   const std::string& lineage, ClusterAccess::Purpose purpose);
/// Records the run and walks it; the exit code of the verb.
[[nodiscard]] Exit launch_recipe(Access& access, upgrade::Run run);

}  // namespace kmm::tool_upgrade
