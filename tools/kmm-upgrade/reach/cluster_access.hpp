// SPDX-License-Identifier: Apache-2.0
// The cluster that a call works on: where it is, its objects, the rights there, the Lease against others, kinds that it
// lacks.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/live/cluster.hpp"
#include "kmm-upgrade/record/access.hpp"
#include "kube/lease_keeper.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

/// What nodes are reached for: a Module, or the Kubernetes of the cluster, which no operator of KMM is about.
struct Target {
    enum class Subject { module, kubernetes };
    std::string ns, module, service_account, lineage;
    std::vector<kube::Rule> rights;  ///< besides those of nodes, Lease and worker Pods
    Subject subject = Subject::module;
    /// Names of what must not be walked at the same time, in the namespace `ns`.
    std::vector<std::string> apart = {};
};

class ClusterAccess {
public:
    explicit ClusterAccess(RecordAccess& record);
    /// Gives the Lease up.
    ~ClusterAccess();
    ClusterAccess(const ClusterAccess&) = delete;
    ClusterAccess& operator=(const ClusterAccess&) = delete;

    /// Where the cluster is: the option --cluster, --kubeconfig or --context, else that of `recorded`, else
    /// KMM_CLUSTER, else what kubectl would find. Errors: usage "no-cluster", "several-sources", "state-in-cluster";
    /// those of kube::load_connection.
    [[nodiscard]] cluster::Place place(const upgrade::Run* recorded = nullptr) const;
    /// Opens the cluster in place of the one that is open; that one must not be in use any more. Errors: those of
    /// kube::load_connection. With `patience` nothing is waited for longer, and nothing is printed about it.
    cluster::Cluster& open(const cluster::Place& place,
                           std::optional<std::chrono::milliseconds> patience = std::nullopt);
    /// The open one.
    [[nodiscard]] cluster::Cluster& opened();
    /// Takes the lock of a directory cluster, which is kept until this object ends; nothing for others. Errors:
    /// record::lock_cluster_directory.
    void lock_directory();

    /// Of the lock of lock_directory, as RecordAccess::lock_descriptor.
    [[nodiscard]] std::optional<int> lock_descriptor() const;

    /// Rights that the walk of a Module of namespace `ns` ("": not known) will need are asked for by whatever asks for
    /// rights first; beside an operator the store may only change labels from now on. Sends nothing.
    void expect(const upgrade::Options& options, const std::string& ns);
    /// On an API server: asks for every right, then, unless it is to look only, takes the Lease of this Module. Once it
    /// is lost, nothing is changed any more. Of a directory it takes the lock. Errors: those of
    /// KubeStore::require_rights, LeaseKeeper::acquire and, for what is to stay apart, require_unheld; checks_failed
    /// "operator-present", "operator-missing".
    enum class Purpose { look, change };
    void secure(const upgrade::Options& options, const Target& target, Purpose purpose);
    /// Waits, if a Lease is held, until it is certain that it still is, --api-timeout at most. Errors: those of
    /// LeaseKeeper::require.
    void require_lease() const;
    /// Removes the Lease that a process of `run`, which has ended, left on an API server when it was killed. Faults are
    /// no faults: a Lease that is left expires.
    void free_ended_lease(const upgrade::Run& run);

    /// The names of the definitions, "a,b", of kinds that the server lacks and that a run with worker Pods creates:
    /// NodeModulesConfig, with Definitions::all also Module. "" if nothing is lacking. Changes nothing. Errors: those
    /// of KubeStore::require_kinds and require_creatable; checks_failed "operator-present".
    enum class Definitions { of_nodes, all };
    [[nodiscard]] std::string kinds_to_create(const upgrade::Options& options, Definitions wanted);
    /// Creates those of `names` that are still lacking, and notes each. Errors: those of create_definition.
    void create_kinds(const std::string& names);

    [[nodiscard]] Call& call() const noexcept { return call_; }

private:
    /// Of its own: no try is longer than 5 s.
    [[nodiscard]] std::unique_ptr<kube::Client> lease_client(cluster::KubeStore& server,
                                                             std::chrono::milliseconds api_timeout);
    void acquire_lease(const upgrade::Options& options, const Target& target);

    Call& call_;
    RecordAccess& record_;
    std::optional<record::Lock> directory_lock_;
    std::atomic<bool> taking_lease_{false};
    std::unique_ptr<kube::LeaseKeeper> lease_;
    std::optional<cluster::Cluster> cluster_;  ///< closed before the Lease is given up
};

/// Name of the Lease that is held while a Module is walked.
[[nodiscard]] std::string lease_name(const std::string& ns, const std::string& module);

/// LINEAGE of a holder USER@HOST/PID/LINEAGE, "" if it is no such text.
[[nodiscard]] std::string lineage_of_holder(const std::string& holder);

}  // namespace kmm::tool_upgrade
