// SPDX-License-Identifier: Apache-2.0
// One of several programs at a time: a Lease of coordination.k8s.io. A Lease is no fence: who has lost it may still be
// acting, so that the holder must stop by itself before its time is over.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "kube/client.hpp"

namespace kmm::kube {

struct LeaseOptions {
    std::string namespace_ = "default";
    std::string name;    ///< "kmm-upgrade-SCOPE"
    std::string holder;  ///< "user@host/pid/lineage": whoever finds the Lease must be able to find us
    std::chrono::seconds duration{15};
};

/// What the Lease says.
struct LeaseState {
    std::string holder;  ///< "" when it is free
    std::chrono::seconds duration{};
    std::string acquire_time, renew_time, resource_version, uid;
    std::int64_t transitions = 0;
};

/// locked 75 "lease-held": who has it, since when, and when it was renewed last.
[[nodiscard]] Error lease_held_error(const LeaseOptions& options, const LeaseState& state);

/// Time stamps of other holders are never compared with our clock: a Lease is over when it has not changed for its
/// duration while we were looking. Not thread safe.
class Lease {
public:
    /// Nothing is sent. `client` must outlive it.
    Lease(Client& client, LeaseOptions options);

    /// One try. nullopt: it is ours now. Else who has it; ask again, it is taken once its time is over.
    [[nodiscard]] std::optional<LeaseState> try_acquire();
    /// Says that we are still there. Errors: locked 75 "lease-lost" when somebody else has it or it is gone.
    void renew();
    /// Gives it up if it is still ours. Failures are swallowed: it runs out by itself.
    void release() noexcept;
    /// As release, but nothing is left behind: the object itself is deleted, if it is still as we have written it.
    void remove() noexcept;
    /// Frees it although its time is not over. `holder` must be exactly who has it. Errors: locked 75 "lease-held" if
    /// it is somebody else, not_found "object-not-found".
    void break_holder(const std::string& holder);
    /// What it says now; nullopt if there is none.
    [[nodiscard]] std::optional<LeaseState> look();

private:
    [[nodiscard]] std::string now_text() const;
    [[nodiscard]] value::Node object_of(const LeaseState& state) const;
    void take(const LeaseState& state);

    Client& client_;
    LeaseOptions options_;
    std::optional<LeaseState> mine_;
    std::string seen_version_;                     ///< of somebody else's
    std::chrono::milliseconds seen_since_{};
};

}  // namespace kmm::kube
