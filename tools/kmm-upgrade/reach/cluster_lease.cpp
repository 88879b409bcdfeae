// SPDX-License-Identifier: Apache-2.0
// Rights on an API server, and the Lease against others.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/live/operator_signs.hpp"
#include "cluster/worker/pod_runner.hpp"
#include "kmm-upgrade/reach/cluster_access.hpp"
#include "sys/host.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

std::string lease_holder(const std::string& lineage) {
    return fmt::format("{}@{}/{}/{}", sys::caller_name(), sys::host_name(), getpid(), lineage);
}

/// HOST and LINEAGE of USER@HOST/PID/LINEAGE.
std::pair<std::string, std::string> origin_of(const std::string& holder) {
    const auto end = holder.find('/');
    const auto lineage = holder.rfind('/');
    if (end == std::string::npos || lineage == end) return {};
    const auto at = holder.rfind('@', end);
    return {holder.substr(at == std::string::npos ? 0 : at + 1, end - (at == std::string::npos ? 0 : at + 1)),
            holder.substr(lineage + 1)};
}

std::string lease_namespace(const upgrade::Options& options, const std::string& ns) {
    return options.lease_namespace.empty() ? ns : options.lease_namespace;
}

kube::LeaseOptions lease_options(const upgrade::Options& options, const std::string& ns, const std::string& module,
                                 const std::string& lineage) {
    kube::LeaseOptions lease;
    lease.namespace_ = lease_namespace(options, ns);
    lease.name = lease_name(ns, module);
    lease.holder = lease_holder(lineage);
    return lease;
}

/// Of the Lease, and of worker Pods where they are made.
std::vector<kube::Rule> work_rules(const upgrade::Options& options, const std::string& ns) {
    std::vector<kube::Rule> rules;
    for (const char* verb : {"get", "create", "update", "delete"})
        rules.push_back({verb, "coordination.k8s.io", "leases", "", lease_namespace(options, ns), ""});
    if (options.via != upgrade::Via::self) return rules;
    const auto pods = cluster::worker_pod_rules(options.worker_namespace.empty() ? ns : options.worker_namespace);
    rules.insert(rules.end(), pods.begin(), pods.end());
    return rules;
}

/// Errors: checks_failed "operator-present" for worker Pods beside KMM's operator, "operator-missing" for the contrary;
/// nothing if a person has said how it is.
void require_operator(const upgrade::Options& options, cluster::KubeStore& server, const Target& target) {
    const bool is_operated = options.via == upgrade::Via::operator_;
    if (!options.operator_said.empty() || (!is_operated && options.via != upgrade::Via::self)) return;
    const auto signs = cluster::look_for_operator(server.client());
    if (!is_operated && !signs.pods.empty())
        throw Error(
            Exit::checks_failed, "operator-present",
            fmt::format("KMM's operator is running in {} (Pod {}): it would also load and unload Module {}/{}",
                        server.describe(), signs.pods.front().name, target.ns, target.module))
            .detail("known by", signs.pods.front().sign)
            .hint(
                "--via operator sets the version labels and lets it work; --operator absent if it leaves this Module "
                "alone");
    if (is_operated && !signs.any())
        throw Error(
            Exit::checks_failed, "operator-missing",
            fmt::format("found no sign of KMM's operator in {}: no Pod of it, no NodeModulesConfig that it wrote",
                        server.describe()))
            .detail("looked for", fmt::format("Pods labelled {}=kmm, named kmm-operator-controller, or of the image "
                                              "kernel-module-management-operator",
                                              cluster::k_label_part_of))
            .hint("--via self loads and unloads by worker Pods; --operator present if it is there nevertheless");
}

}  // namespace

ClusterAccess::~ClusterAccess() {
    if (lease_ && call_.stopped()) lease_->hurry();
}

void ClusterAccess::expect(const upgrade::Options& options, const std::string& ns) {
    using Leaving = cluster::Workloads::Leaving;
    auto& cluster = opened();
    auto* server = cluster.server;
    if (server != nullptr && options.via == upgrade::Via::operator_)
        server->limit_writes(cluster::KubeStore::Writes::labels);
    if (options.drain) cluster.workloads->expect_rights(options.evict_users ? Leaving::users : Leaving::all);
    if (server != nullptr && !ns.empty()) server->expect_rights(work_rules(options, ns));
}

void ClusterAccess::secure(const upgrade::Options& options, const Target& target, Purpose purpose) {
    auto* server = opened().server;
    if (server == nullptr) {
        if (purpose == Purpose::change) lock_directory();
        return;
    }
    auto rules = work_rules(options, target.ns);
    rules.insert(rules.end(), target.rights.begin(), target.rights.end());
    const auto& images = kube::resources::k_module_images_configs;
    if (options.via == upgrade::Via::operator_) {
        server->limit_writes(cluster::KubeStore::Writes::labels);
        if (server->client().serves(images))
            for (const char* verb : {"get", "list", "watch"})
                rules.push_back({verb, images.group, images.plural, "", target.ns, ""});
    }
    server->require_rights(rules);
    if (target.subject == Target::Subject::module) require_operator(options, *server, target);
    if (purpose == Purpose::change) acquire_lease(options, target);
}

void ClusterAccess::acquire_lease(const upgrade::Options& of_run, const Target& target) {
    lease_.reset();  // a run that follows another one may take the same Lease
    const auto options = lease_options(of_run, target.ns, target.module, target.lineage);
    const auto tell = [this](const kube::LeaseOptions& lease, const kube::LeaseState& other) {
        call_.note(fmt::format("Lease {}/{} is held by {}; looking whether that is still alive", lease.namespace_,
                               lease.name, base::escape(other.holder)));
    };
    auto keeper = std::make_unique<kube::LeaseKeeper>(lease_client(*opened().server, call_.api_timeout()), options);
    if (const auto holder = call_.args().get("break-lock")) keeper->break_holder(*holder);
    const auto mine = origin_of(options.holder);
    taking_lease_ = true;
    // The record's lock is ours: an earlier process of this very run on this host is gone.
    keeper->acquire([&](const std::string& holder) { return origin_of(holder) == mine; },
                    [&](const kube::LeaseState& other) { tell(options, other); });
    // Each takes its own first: of two that begin at the same time, at least one finds the other's.
    if (!target.apart.empty()) {
        const auto client = lease_client(*opened().server, call_.api_timeout());
        for (const auto& name : target.apart) {
            const auto apart = lease_options(of_run, target.ns, name, "");
            try {
                kube::require_unheld(*client, apart, [&](const kube::LeaseState& other) { tell(apart, other); });
            } catch (Error& error) {
                if (error.code() == "lease-held")
                    error.hint("wait until it has ended: one run at a time empties nodes and restarts what is there");
                throw;
            }
        }
    }
    taking_lease_ = false;
    lease_ = std::move(keeper);
}

void ClusterAccess::require_lease() const {
    if (lease_) lease_->require(call_.api_timeout(), [this] { return call_.stopped(); });
}

std::unique_ptr<kube::Client> ClusterAccess::lease_client(cluster::KubeStore& server,
                                                          std::chrono::milliseconds api_timeout) {
    kube::ClientOptions quiet;
    quiet.request_timeout = std::chrono::seconds(5);
    quiet.api_timeout = api_timeout;
    quiet.credentials = server.client().credentials();
    // To renew it, and to give it up, is wanted in any case.
    quiet.stop_waiting = [this] { return taking_lease_ && call_.stopped(); };
    return kube::make_client(server.client().connection(), call_.clock(), call_.random(), std::move(quiet));
}

void ClusterAccess::free_ended_lease(const upgrade::Run& run) {
    try {
        if (record_.directory().holder()) return;  // who is at work on this record frees it
        auto* server = open(place(&run)).server;
        if (server == nullptr) return;
        const auto text = upgrade::describe(run);
        const auto options = lease_options(run.options, text.space, text.name, run.lineage);
        const auto client =
            lease_client(*server, std::min<std::chrono::milliseconds>(std::chrono::seconds(5), call_.api_timeout()));
        kube::Lease lease(*client, options);
        const auto left = lease.look();
        if (!left || origin_of(left->holder) != origin_of(options.holder)) return;
        lease.break_holder(left->holder);
        if (!lease.try_acquire()) lease.remove();
    } catch (const Error&) {
        return;  // nobody needs it, and it runs out by itself
    }
}

std::string lineage_of_holder(const std::string& holder) { return origin_of(holder).second; }

std::string lease_name(const std::string& ns, const std::string& module) {
    return fmt::format("kmm-upgrade-{}.{}", ns, module);
}

}  // namespace kmm::tool_upgrade
