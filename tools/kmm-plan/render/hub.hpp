// SPDX-License-Identifier: Apache-2.0
// kmm-plan render hub: what each cluster gets of ManagedClusterModules.
#pragma once

#include <string_view>

#include "cli/app.hpp"

namespace kmm::tool_plan {

inline constexpr std::string_view k_what_hub = "hub";

/// True if WHAT of `render` names the hub.
[[nodiscard]] bool asks_for_hub(const cli::Args& args);

/// Prints ManifestWorks, or writes a directory a cluster.
/// Errors: usage if something else than the hub is asked for too, or an option for single nodes is given; usage
/// "bad-cluster-name", "several-hubs"; not_found "no-managed-cluster", "no-managed-cluster-module"; those of
/// read_sources and write_directory; data with all faults of the documents.
[[nodiscard]] Exit run_render_hub(const cli::Args& args, cli::Context& context);

}  // namespace kmm::tool_plan
