// SPDX-License-Identifier: Apache-2.0
#include "kube/lease.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::kube {

namespace {

using std::chrono::milliseconds;

LeaseState lease_state(const value::Node& object) {
    LeaseState state;
    state.holder = object.get_string({"spec", "holderIdentity"});
    state.acquire_time = object.get_string({"spec", "acquireTime"});
    state.renew_time = object.get_string({"spec", "renewTime"});
    state.resource_version = object.get_string({"metadata", "resourceVersion"});
    state.uid = object.get_string({"metadata", "uid"});
    const auto number = [&](std::string_view key) {
        const value::Node* node = object.find_path({"spec", key});
        return node == nullptr ? 0 : node->as_int().value_or(0);
    };
    state.duration = std::chrono::seconds(number("leaseDurationSeconds"));
    state.transitions = number("leaseTransitions");
    return state;
}

}  // namespace

Error lease_held_error(const LeaseOptions& options, const LeaseState& state) {
    Error error(Exit::locked, "lease-held",
                fmt::format("Lease {}/{} is held by {}", options.namespace_, options.name, base::escape(state.holder)));
    if (!state.acquire_time.empty()) { error.detail("since", base::escape(state.acquire_time)); }
    error.detail("renewed", base::escape(state.renew_time));
    return std::move(
               error.hint(fmt::format("wait until it has ended, or --break-lock '{}'", base::escape(state.holder))))
        .retryable();
}

Lease::Lease(Client& client, LeaseOptions options) : client_(client), options_(std::move(options)) {}

/// metav1.MicroTime.
std::string Lease::now_text() const {
    std::string text = base::format_rfc3339(client_.clock().now_unix());
    text.insert(text.size() - 1, ".000000");
    return text;
}

value::Node Lease::object_of(const LeaseState& state) const {
    value::Node metadata = value::Node::mapping({{"name", options_.name}, {"namespace", options_.namespace_}});
    if (!state.resource_version.empty()) { metadata.set("resourceVersion", state.resource_version); }
    value::Node spec =
        value::Node::mapping({{"leaseDurationSeconds", static_cast<std::int64_t>(options_.duration.count())},
                              {"leaseTransitions", state.transitions}});
    if (!state.holder.empty()) { spec.set("holderIdentity", state.holder); }
    if (!state.acquire_time.empty()) { spec.set("acquireTime", state.acquire_time); }
    if (!state.renew_time.empty()) { spec.set("renewTime", state.renew_time); }
    return value::Node::mapping({{"apiVersion", "coordination.k8s.io/v1"},
                                 {"kind", "Lease"},
                                 {"metadata", std::move(metadata)},
                                 {"spec", std::move(spec)}});
}

std::optional<LeaseState> Lease::look() {
    const auto object = client_.find(resources::k_leases, {options_.namespace_, options_.name});
    return object ? std::optional(lease_state(*object)) : std::nullopt;
}

void Lease::take(const LeaseState& state) {
    const value::Node object = object_of(state);
    const value::Node stored = state.resource_version.empty() ? client_.create(resources::k_leases, object)
                                                              : client_.replace(resources::k_leases, object);
    mine_ = lease_state(stored);
}

std::optional<LeaseState> Lease::try_acquire() {
    const auto there = look();
    LeaseState wanted = there.value_or(LeaseState{});
    if (there && !there->holder.empty() && there->holder != options_.holder) {
        const milliseconds now = client_.clock().monotonic();
        if (there->resource_version != seen_version_) {
            seen_version_ = there->resource_version;
            seen_since_ = now;
            return there;
        }
        if (now - seen_since_ < there->duration) { return there; }
    }
    if (wanted.holder != options_.holder) {
        wanted.transitions += there ? 1 : 0;
        wanted.acquire_time = now_text();
    }
    wanted.holder = options_.holder;
    wanted.renew_time = now_text();
    try {
        take(wanted);
    } catch (const Error& error) {
        if (error.code() != "conflict" && error.code() != "already-exists") { throw; }
        const auto winner = look();
        if (!winner || winner->holder != options_.holder) { return winner.value_or(LeaseState{}); }
        mine_ = *winner;  // a lost answer of our own request
    }
    // A creation whose answer was lost may have found that of another kmm-upgrade, which writes under the same name.
    if (mine_->holder != options_.holder) { return std::exchange(mine_, std::nullopt); }
    return std::nullopt;
}

void Lease::renew() {
    const auto lost = [&](const std::string& why) {
        mine_.reset();
        return Error(Exit::locked, "lease-lost",
                     fmt::format("Lease {}/{} is lost: {}", options_.namespace_, options_.name, why));
    };
    if (!mine_) { throw lost("it is not held"); }
    for (int tried = 0;; ++tried) {
        LeaseState wanted = *mine_;
        wanted.renew_time = now_text();
        try {
            take(wanted);
            return;
        } catch (const Error& error) {
            if (error.code() == "object-not-found") { throw lost("somebody has deleted it"); }
            if (error.code() != "conflict" || tried > 0) { throw; }
        }
        const auto there = look();
        if (!there) { throw lost("somebody has deleted it"); }
        if (there->holder != options_.holder) { throw lost("held by " + base::escape(there->holder)); }
        mine_ = *there;
    }
}

void Lease::release() noexcept {
    if (!mine_) { return; }
    try {
        LeaseState free = *mine_;
        free.holder.clear();
        free.renew_time = now_text();
        take(free);
    } catch (...) {
        // It runs out by itself.
    }
    mine_.reset();
}

void Lease::remove() noexcept {
    if (!mine_) { return; }
    try {
        // A second time after a renewal of ours whose answer was lost.
        for (int tried = 0; tried < 2 && !mine_->uid.empty(); ++tried) {
            DeleteOptions options;
            options.uid = mine_->uid;
            options.resource_version = mine_->resource_version;
            const auto deletion = client_.remove(resources::k_leases, {options_.namespace_, options_.name}, options);
            const auto there = deletion == Deletion::other_uid ? look() : std::nullopt;
            if (!there || there->holder != options_.holder) {
                mine_.reset();
                return;
            }
            mine_ = there;
        }
    } catch (const Error& error) {
        if (is_server_trouble(error)) { mine_.reset(); }  // it runs out by itself
    } catch (...) {
        // Giving it up may still succeed.
    }
    release();
}

void Lease::break_holder(const std::string& holder) {
    const auto there = look();
    if (!there) {
        throw Error(Exit::not_found, "object-not-found",
                    fmt::format("there is no Lease {}/{}", options_.namespace_, options_.name));
    }
    if (there->holder != holder) { throw lease_held_error(options_, *there); }
    LeaseState free = *there;
    free.holder.clear();
    take(free);
    mine_.reset();
}

}  // namespace kmm::kube
