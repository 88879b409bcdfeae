// SPDX-License-Identifier: Apache-2.0
// kmm-worker of this installation as one file, for nodes that have none of this version.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "cluster/worker/worker_bundle.hpp"

namespace kmm::tool_upgrade {

/// Made by `kmm-worker bundle` of the program beside this one, else of PATH, which takes two seconds, when it is needed
/// first. One beside this program is kept in $XDG_CACHE_HOME/kmm-tools, else /var/cache/kmm-tools, for users other than
/// root ~/.cache/kmm-tools, until the program or the libraries of this host change.
class OwnBundle {
public:
    /// Thread safe; the others wait while one makes it. Errors: not_found, config or io "bundle-failed".
    [[nodiscard]] const cluster::WorkerBundle& get();

private:
    std::mutex mutex_;
    std::optional<cluster::WorkerBundle> made_;
};

/// Of --worker "bundle" or "PREFIX bundle", as "sudo -n bundle": the prefix, "" for none. nullopt for any other
/// command.
[[nodiscard]] std::optional<std::string> bundle_prefix(const std::string& text);

}  // namespace kmm::tool_upgrade
