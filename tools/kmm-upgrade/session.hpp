// SPDX-License-Identifier: Apache-2.0
// What all verbs open: the state directory, the cluster, the runner; and how a walk ends as an exit code.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cli/app.hpp"
#include "cluster/kube_store.hpp"
#include "cluster/plugin_store.hpp"
#include "cluster/runner.hpp"
#include "cluster/store.hpp"
#include "cluster/workloads.hpp"
#include "drive/driver.hpp"
#include "kmm-upgrade/progress.hpp"
#include "kube/lease_keeper.hpp"
#include "record/state_dir.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/random.hpp"

namespace kmm::tool_upgrade {

/// The real clock and files of this process, and the record they belong to.
class Session {
public:
    /// Touches no disk.
    Session(const cli::Args& args, cli::Context& context);
    /// Gives the Lease up.
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Reads the record; warnings go to standard error. Errors: as StateDir::open and load; nullopt when idle.
    [[nodiscard]] std::optional<upgrade::Run> load();
    /// That -n, if it is given, is the namespace of the run's Module. Errors: not_found "no-run".
    void require_named(const upgrade::Run& run) const;
    /// As load and require_named. Errors: also not_found "no-run".
    [[nodiscard]] upgrade::Run must_load();
    /// Takes the lock for `operation`, if the session does not have it; released with the session. Errors: locked.
    void lock(const std::string& operation);

    /// Where the cluster is: the option --cluster, --kubeconfig or --context, else `recorded`, else KMM_CLUSTER, else what
    /// kubectl would find. A directory's absolute path, or "context NAME" or "context NAME of FILE".
    /// Errors: usage "no-cluster", "several-sources", "state-in-cluster"; those of kube::load_connection.
    [[nodiscard]] std::string cluster_place(const std::string& recorded) const;
    [[nodiscard]] std::unique_ptr<cluster::ClusterStore> open_cluster(const std::string& place);
    /// What else runs on the nodes of `store`; knows the Pod that this process runs in.
    [[nodiscard]] static std::unique_ptr<cluster::Workloads> workloads_on(cluster::ClusterStore& store);
    /// With --drain: the rights for it are asked for by whatever asks for rights first.
    static void expect_drain(const upgrade::Options& options, cluster::Workloads& workloads);
    /// The same for those of Lease and worker Pods, where the Module's namespace `ns` is known already, which may be "".
    static void expect_work(const upgrade::Options& options, cluster::ClusterStore& store, const std::string& ns);
    /// What nodes are reached for.
    struct Errand {
        std::string ns, module, service_account, lineage;
        std::vector<kube::Rule> rights;  ///< besides those of nodes and Lease
    };
    /// Puts --via, --worker-image, --operator, --repair, --ssh-config and --worker over what is recorded. A run that is `fresh` and says nothing of
    /// nodes uses worker Pods on an API server, and ssh elsewhere. Errors: usage "missing-option", "bad-value".
    enum class Age { fresh, recorded };
    void choose_runner(upgrade::Options& options, const std::string& place, Age age) const;
    /// As KubeStore::require_kinds; nothing for a directory.
    static void require_kinds(cluster::ClusterStore& store);
    /// As require_kinds, but where nodes are reached by worker Pods, and so without an operator, kinds that the server lacks are to be
    /// created: NodeModulesConfig, and with Definitions::all also Module, without which there is no Module to start. The names of their
    /// definitions, "a,b", for upgrade::Run::created_definitions; "" if nothing is lacking. Changes nothing.
    /// Errors: those of require_kinds and require_creatable; checks_failed "operator-present".
    enum class Definitions { of_nodes, all };
    [[nodiscard]] static std::string kinds_to_create(const upgrade::Options& options, cluster::ClusterStore& store, Definitions wanted);
    /// Creates those of `names` that are still lacking, and says so. Errors: those of create_definition.
    void create_kinds(const std::string& names, cluster::ClusterStore& store);
    /// Beside an operator `store` may change labels of nodes, and nothing else: neither are other rights asked for.
    static void limit_writes(const upgrade::Options& options, cluster::ClusterStore& store);
    /// On an API server: asks for every right, then, unless it is to look only, takes the Lease of this Module, which is given up with the session. From then
    /// on nothing is changed once it is lost. `store` must be of open_cluster. Of a directory it takes the lock.
    /// Errors: those of KubeStore::require_rights, require_operator and LeaseKeeper::acquire.
    enum class Purpose { look, change };
    void secure(const upgrade::Options& options, cluster::ClusterStore& store, const Errand& errand, Purpose purpose);
    /// Removes the Lease that a process of `run`, which has ended, left on an API server when it was killed. Nothing needs that, so
    /// faults are no faults.
    void free_ended_lease(const upgrade::Run& run);
    /// Beside an operator: every image that nodes of `run` are to load is one that KMM has found. Waits a while for KMM to look.
    /// Errors: checks_failed "image-not-found-by-kmm".
    static void require_images(const upgrade::Run& run, cluster::ClusterStore& store);
    /// The runner that `options` name.
    [[nodiscard]] std::unique_ptr<cluster::NodeRunner> make_runner(const upgrade::Options& options, cluster::ClusterStore& store,
                                                                   const Errand& errand) const;

    /// With worker Pods, which no operator accompanies: a store that steps the Module's DaemonSets; what it asks for is applied.
    /// nullptr otherwise, then `store` itself is used.
    /// Whether fields of DaemonSets that others have set are taken over: --force-conflicts.
    [[nodiscard]] kube::Force force() const;
    [[nodiscard]] std::unique_ptr<cluster::PluginStore> make_plugins(const upgrade::Run& run, cluster::ClusterStore& store) const;

    /// True once a signal asked to stop or --timeout passed.
    [[nodiscard]] bool stopped() const;
    /// The exit code of having stopped: 130, 143 or 124.
    [[nodiscard]] Exit stop_exit() const;
    /// Prints the summary of the run and maps how the walk ended to the exit code.
    [[nodiscard]] Exit finish(drive::Ended ended, const upgrade::Run& run);
    /// As finish, for a run after which another one follows: where the result is one document, it is that of the last run.
    [[nodiscard]] Exit finish_one(drive::Ended ended, const upgrade::Run& run);

    record::StateDir& directory() noexcept { return directory_; }
    sys::Clock& clock() noexcept { return clock_; }
    cli::Context& context() noexcept { return context_; }
    const cli::Args& args() const noexcept { return args_; }

    /// Takes the lock of a directory cluster, which is kept until the session ends; nothing for others.
    /// Errors: record::lock_cluster_directory.
    void lock_directory(cluster::ClusterStore& store, const std::string& operation);

private:
    /// Errors: checks_failed "operator-present" for worker Pods beside KMM's operator, "operator-missing" for the contrary; nothing if a
    /// person has said how it is.
    static void require_operator(const upgrade::Options& options, cluster::KubeStore& server, const Errand& errand);
    [[nodiscard]] Exit exit_of(drive::Ended ended, const upgrade::Run& run) const;
    /// Of its own: no try is longer than 5 s.
    [[nodiscard]] std::unique_ptr<kube::Client> lease_client(cluster::KubeStore& server, std::chrono::milliseconds api_timeout);
    /// As LeaseKeeper::require, for as long as --api-timeout says, unless somebody asks to stop.
    void require_lease() const;
    const cli::Args& args_;
    cli::Context& context_;
    sys::LinuxClock clock_;
    sys::LinuxFileOps files_;
    sys::LinuxRandom random_;
    record::StateDir directory_;
    std::optional<record::Lock> lock_;
    std::optional<record::Lock> cluster_lock_;
    std::string operation_;  ///< that of lock()
    std::set<std::string> warned_;
    std::atomic<bool> taking_lease_{false};
    std::unique_ptr<kube::LeaseKeeper> lease_;
    std::chrono::milliseconds api_timeout_{300'000};
    std::optional<std::chrono::milliseconds> deadline_;
};

/// What a verb may touch: the record alone; nodes, which on an API server needs rights and the Lease; `onward` brings nodes further, and
/// needs the rights to drain them, too.
enum class Reach { record, nodes, onward };

/// A recorded run with everything a walking verb needs. Members in the order of their dependencies.
struct Walk {
    Walk(Session& in, const std::string& operation, Reach reach = Reach::onward);
    Session& session;
    upgrade::Run found;  ///< as it was when the verb began
    std::unique_ptr<cluster::ClusterStore> store;
    std::unique_ptr<cluster::Workloads> workloads;
    std::unique_ptr<cluster::NodeRunner> runner;
    std::unique_ptr<cluster::PluginStore> plugins;  ///< null unless it is to be used instead of the store
    drive::StateJournal journal;
    Progress progress;
    drive::Recorder recorder;
    drive::Driver driver;
};

/// Runs `body`. If it ends because the Lease is lost, or the API server out of reach, that pause is recorded before the error goes on.
[[nodiscard]] drive::Ended recording_loss(drive::Driver& driver, const drive::Recorder& recorder,
                                          const std::function<drive::Ended()>& body);

/// Name of the Lease that is held while a Module is walked.
[[nodiscard]] std::string lease_name(const std::string& ns, const std::string& module);

/// LINEAGE of a holder USER@HOST/PID/LINEAGE, "" if it is no such text.
[[nodiscard]] std::string lineage_of_holder(const std::string& holder);

/// Options every verb takes, in groups.
[[nodiscard]] std::vector<cli::Option> state_options();
[[nodiscard]] std::vector<cli::Option> runner_options();

}  // namespace kmm::tool_upgrade
