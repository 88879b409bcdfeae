// SPDX-License-Identifier: Apache-2.0
// Pull Secrets of a live cluster, as they are now. Internal to this room.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "api/types.hpp"
#include "kube/client.hpp"

namespace kmm::cluster {

/// Thread safe. A token may be renewed at any time, so a Secret is read again once it is five seconds old, and each
/// time while it is missing.
class PullSecrets {
public:
    /// The Secret, no object if there is none; its faults go to `diagnostics`. At most one request. Errors: of
    /// kube::Client.
    [[nodiscard]] api::Objects get(kube::Client& client, const kube::Key& key, Diagnostics& diagnostics);

private:
    struct Known {
        api::Objects objects;
        std::chrono::milliseconds read{};  ///< on the monotonic clock
    };
    std::mutex mutex_;
    std::map<std::string, Known> known_;  ///< by NAMESPACE/NAME
};

}  // namespace kmm::cluster
