// SPDX-License-Identifier: Apache-2.0
#include "kube/lease_keeper.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/watch.hpp"

namespace kmm::kube {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds k_between_looks{1000};
constexpr milliseconds k_between_failures{500};
constexpr milliseconds k_renewed_within{5000};  // else it is tried anew, with the time of then
constexpr milliseconds k_left_within{30'000};

/// Looks at the Lease of somebody else, once a second.
class Onlooker {
public:
    Onlooker(Client& client, const LeaseOptions& options, const std::function<void(const LeaseState&)>& waiting)
        : client_(client), options_(options), waiting_(waiting), start_(client.clock().monotonic()) {}
    /// True where `other`, as it is now, is over: it has not changed for its duration, and a little longer. Errors:
    /// "lease-held" for one that was renewed since the first look.
    [[nodiscard]] bool is_over(const LeaseState& other) {
        if (!first_) {
            first_ = other;
            waiting_(other);
        }
        if (other.resource_version != first_->resource_version) throw lease_held_error(options_, other);
        return client_.clock().monotonic() - start_ > milliseconds(other.duration) + 3 * k_between_looks;
    }
    /// Until the next look. Errors: stopped_waiting.
    void wait(const LeaseState& other) {
        const auto& asked = client_.options().stop_waiting;
        if ((!asked || !asked()) && client_.clock().sleep_for(k_between_looks)) return;
        throw stopped_waiting(fmt::format("Lease {}/{}, which is held by {}", options_.namespace_, options_.name,
                                          base::escape(other.holder)));
    }

private:
    Client& client_;
    const LeaseOptions& options_;
    const std::function<void(const LeaseState&)>& waiting_;
    milliseconds start_;
    std::optional<LeaseState> first_;
};

}  // namespace

LeaseKeeper::LeaseKeeper(std::unique_ptr<Client> client, LeaseOptions options)
    : client_(std::move(client)),
      options_(options),
      patience_(client_->options().api_timeout),
      lease_(*client_, std::move(options)) {}

LeaseKeeper::~LeaseKeeper() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (!thread_.joinable()) { return; }
    thread_.join();
    client_->set_api_timeout(std::min(hurried_ ? k_renewed_within : k_left_within, patience_));
    if (!lost_) { lease_.remove(); }
}

void LeaseKeeper::acquire(const std::function<bool(const std::string&)>& is_dead,
                          const std::function<void(const LeaseState&)>& waiting) {
    sys::Clock& clock = client_->clock();
    Onlooker onlooker(*client_, options_, waiting);
    for (;;) {
        const milliseconds before = clock.with_suspend();
        const auto other = lease_.try_acquire();
        if (!other) {
            safe_until_ = (before + milliseconds(options_.duration) / 2).count();
            break;
        }
        if (!other->holder.empty() && is_dead(other->holder)) {
            lease_.break_holder(other->holder);
            continue;
        }
        if (onlooker.is_over(*other)) throw lease_held_error(options_, *other);
        onlooker.wait(*other);
    }
    client_->set_api_timeout(std::min(k_renewed_within, patience_));
    thread_ = std::thread([this] { keep(); });
}

void require_unheld(Client& client, const LeaseOptions& options,
                    const std::function<void(const LeaseState&)>& waiting) {
    Lease lease(client, options);
    Onlooker onlooker(client, options, waiting);
    for (;;) {
        const auto other = lease.look();
        if (!other || other->holder.empty() || onlooker.is_over(*other)) return;
        onlooker.wait(*other);
    }
}

void LeaseKeeper::renew_once() {
    const milliseconds before = client_->clock().with_suspend();
    lease_.renew();
    safe_until_ = (before + milliseconds(options_.duration) / 2).count();
}

void LeaseKeeper::keep() {
    milliseconds wait = milliseconds(options_.duration) / 4;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        changed_.wait_for(lock, wait, [&] { return stopping_ || wanted_now_; });
        if (stopping_) { return; }
        wanted_now_ = false;
        lock.unlock();
        std::optional<Error> failed;
        try {
            renew_once();
        } catch (const Error& error) {
            failed = error;
        } catch (...) {
            failed = Error(Exit::bug, "bug",
                           fmt::format("Lease {}/{} could not be renewed", options_.namespace_, options_.name));
        }
        lock.lock();
        wait = failed ? k_between_failures : milliseconds(options_.duration) / 4;
        refused_.reset();
        if (failed && failed->exit() == Exit::no_permission && !failed->is_retryable()) { refused_ = failed; }
        if (failed && failed->code() == "lease-lost") {
            lost_ = std::move(failed);
            changed_.notify_all();
            return;
        }
        changed_.notify_all();
    }
}

void LeaseKeeper::require(milliseconds patience, const std::function<bool()>& is_interrupted) {
    sys::Clock& clock = client_->clock();
    const milliseconds start = clock.monotonic();
    std::unique_lock lock(mutex_);
    for (;;) {
        if (lost_) {
            Error error = *lost_;
            throw std::move(error).hint("nothing more was done; when the other has ended: kmm-upgrade resume");
        }
        if (clock.with_suspend().count() <= safe_until_) { return; }
        if (refused_) { throw *refused_; }
        if (is_interrupted && is_interrupted()) {
            throw stopped_waiting("the API server");
        }
        if (clock.monotonic() - start > patience) {
            throw Error(Exit::unavailable, "api-unreachable",
                        fmt::format("Lease {}/{} could not be renewed for {}", options_.namespace_, options_.name,
                                    base::format_duration(patience)))
                .retryable();
        }
        wanted_now_ = true;
        changed_.notify_all();
        changed_.wait_for(lock, k_between_failures);
    }
}

}  // namespace kmm::kube
