// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/pull_secrets.hpp"

#include <utility>

#include "kube/fleet.hpp"

namespace kmm::cluster {

api::Objects PullSecrets::get(kube::Client& client, const kube::Key& key, Diagnostics& diagnostics) {
    constexpr std::chrono::seconds k_fresh_for{5};
    const auto now = client.clock().monotonic();
    {
        const std::lock_guard lock(mutex_);
        const auto found = known_.find(key.to_string());
        if (found != known_.end() && now - found->second.read < k_fresh_for) { return found->second.objects; }
    }
    Known fresh;
    fresh.read = now;
    if (const auto object = client.find(kube::resources::k_secrets, key)) {
        kube::decode_object(kube::resources::k_secrets, *object, fresh.objects, diagnostics);
    }
    const std::lock_guard lock(mutex_);
    if (fresh.objects.secrets.empty()) {
        known_.erase(key.to_string());
        return std::move(fresh.objects);
    }
    return known_.insert_or_assign(key.to_string(), std::move(fresh)).first->second.objects;
}

}  // namespace kmm::cluster
