// SPDX-License-Identifier: Apache-2.0
// Where releases of recipes are kept, and what an update of the nodes has to know of them.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "upgrade/recipe/release.hpp"

namespace kmm::tool_upgrade {

/// --release-namespace.
[[nodiscard]] cli::Option release_namespace_option();
/// Errors: usage "bad-value" if it is empty.
[[nodiscard]] std::string release_namespace_of(const cli::Args& args);

/// Of each recipe the release that is deployed; none without an API server. Where the account may not list the Secrets
/// there are none, too, and a note says so. Errors: those of the API server.
[[nodiscard]] std::vector<upgrade::recipe::Release> deployed_releases(Access& access, const std::string& space);

}  // namespace kmm::tool_upgrade
