// SPDX-License-Identifier: Apache-2.0
// Keeps a Lease while something goes on: renewed in a thread, asked for before every side effect, given up at the end.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kube/client.hpp"
#include "kube/lease.hpp"

namespace kmm::kube {

/// Thread safe once it is acquired.
class LeaseKeeper {
public:
    /// Nothing is sent. The client is the keeper's own, so that no request of others delays a renewal; its clock must
    /// outlive the keeper. Its api_timeout is for taking the Lease; a renewal is tried for 5 s at a time, giving it up
    /// for 30 s.
    LeaseKeeper(std::unique_ptr<Client> client, LeaseOptions options);
    /// Gives the Lease up if it is still ours, and deletes it.
    ~LeaseKeeper();
    LeaseKeeper(const LeaseKeeper&) = delete;
    LeaseKeeper& operator=(const LeaseKeeper&) = delete;

    /// Takes the Lease and begins to renew it. A holder that renews it while we look is alive: an error at once. One
    /// that does not is waited for until its time is over; `waiting` is told of it once. A holder for whom `is_dead`
    /// holds, because the caller knows that it cannot run any more, is not waited for. Errors: locked 75 "lease-held";
    /// those of Client; "interrupted" of stopped_waiting when the client's stop_waiting says so, which must say no
    /// later on: the Lease is to be given up.
    void acquire(const std::function<bool(const std::string& holder)>& is_dead,
                 const std::function<void(const LeaseState&)>& waiting);

    /// Frees it from `holder`, who must have it by exactly that name. Errors: as Lease::break_holder.
    void break_holder(const std::string& holder) { lease_.break_holder(holder); }

    /// Returns when nobody else can have the Lease: at once as a rule, else when the next renewal has succeeded. To be
    /// called before every side effect. Errors: locked 75 "lease-lost" when somebody else has it or it is gone;
    /// unavailable 69 "api-unreachable" when no renewal has succeeded for `patience`; interrupted 130 "interrupted"
    /// when `is_interrupted` says so while it waits; the server's own no_permission when it does not know us any more,
    /// or does not let us renew it.
    void require(std::chrono::milliseconds patience = std::chrono::milliseconds(300'000),
                 const std::function<bool()>& is_interrupted = {});

    /// To give the Lease up is tried for 5 s only: whoever ended this by --timeout or a signal does not wait for a
    /// server that is away.
    void hurry() noexcept { hurried_ = true; }

private:
    void keep();
    void renew_once();

    std::unique_ptr<Client> client_;
    LeaseOptions options_;
    std::chrono::milliseconds patience_;  ///< of the client as it was given
    Lease lease_;  ///< after acquire the thread's alone
    bool hurried_ = false;
    std::atomic<std::int64_t> safe_until_{0};  ///< by Clock::with_suspend, milliseconds
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;
    bool wanted_now_ = false;         ///< somebody waits for a renewal
    std::optional<Error> lost_;
    std::optional<Error> refused_;    ///< the last renewal was, and the next one will be
    std::thread thread_;
};

/// Returns when nobody holds that Lease, which is not taken: a holder that does not renew it is waited for until its
/// time is over, as LeaseKeeper::acquire does. Errors and `waiting`: also as there.
void require_unheld(Client& client, const LeaseOptions& options, const std::function<void(const LeaseState&)>& waiting);

}  // namespace kmm::kube
