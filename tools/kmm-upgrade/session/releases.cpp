// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/releases.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "kmm-upgrade/reach/reach.hpp"
#include "upgrade/drive_recipe/recipe_drivers.hpp"
#include "upgrade/drive_recipe/release_store.hpp"

namespace kmm::tool_upgrade {

cli::Option release_namespace_option() {
    return cli::with_default(cli::option("release-namespace", "NAMESPACE", "namespace of the Secrets with releases"),
                             std::string(drive::k_release_namespace));
}

std::string release_namespace_of(const cli::Args& args) {
    return namespace_option(args, "release-namespace", std::string(drive::k_release_namespace));
}

std::vector<upgrade::recipe::Release> deployed_releases(Access& access, const std::string& space) {
    auto* server = access.cluster.opened().server;
    if (server == nullptr) return {};
    try {
        return drive::RecipeDrivers(server->client(), space).deployed();
    } catch (const Error& error) {
        if (error.code() != "forbidden") throw;
        access.call.note(fmt::format("Secrets of namespace {} may not be listed: drivers that recipes have rolled out "
                                     "are not looked at",
                                     space));
        return {};
    }
}

}  // namespace kmm::tool_upgrade
