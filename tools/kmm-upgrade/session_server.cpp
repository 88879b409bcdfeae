// SPDX-License-Identifier: Apache-2.0
// What a session does about an API server: rights, the Lease, an operator beside it, and how nodes are reached.
#include "kmm-upgrade/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/kube_store.hpp"
#include "cluster/local_runner.hpp"
#include "cluster/operator_signs.hpp"
#include "cluster/pod_runner.hpp"
#include "cluster/ssh_runner.hpp"
#include "sys/host.hpp"

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
    return {holder.substr(at == std::string::npos ? 0 : at + 1, end - (at == std::string::npos ? 0 : at + 1)), holder.substr(lineage + 1)};
}

std::string lease_namespace(const upgrade::Options& options, const std::string& ns) {
    return options.lease_namespace.empty() ? ns : options.lease_namespace;
}

kube::LeaseOptions lease_options(const upgrade::Options& options, const std::string& ns, const std::string& module, const std::string& lineage) {
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
    if (options.runner != "self") return rules;
    const auto pods = cluster::worker_pod_rules(ns);
    rules.insert(rules.end(), pods.begin(), pods.end());
    return rules;
}

/// Beside an operator nobody asks a node.
class NoRunner final : public cluster::NodeRunner {
public:
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        throw bug(fmt::format("a worker is called on {} beside an operator", call.node));
    }
    [[nodiscard]] std::string describe() const override { return std::string(upgrade::k_runner_operator); }
};

/// Nodes that are not reached through the API server: the Lease is asked for before they are.
class LeasedRunner final : public cluster::NodeRunner {
public:
    LeasedRunner(std::unique_ptr<cluster::NodeRunner> inner, std::function<void()> require)
        : inner_(std::move(inner)), require_(std::move(require)) {}
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        require_();
        return inner_->run(call);
    }
    [[nodiscard]] std::string describe() const override { return inner_->describe(); }

private:
    std::unique_ptr<cluster::NodeRunner> inner_;
    std::function<void()> require_;
};

}  // namespace

void Session::expect_drain(const upgrade::Options& options, cluster::Workloads& workloads) {
    using Leaving = cluster::Workloads::Leaving;
    if (options.drain) workloads.expect_rights(options.evict_users ? Leaving::users : Leaving::all);
}

void Session::expect_work(const upgrade::Options& options, cluster::ClusterStore& store, const std::string& ns) {
    auto* server = dynamic_cast<cluster::KubeStore*>(&store);
    if (server != nullptr && !ns.empty()) server->expect_rights(work_rules(options, ns));
}

void Session::secure(const upgrade::Options& options, cluster::ClusterStore& store, const Errand& errand, Purpose purpose) {
    auto* server = dynamic_cast<cluster::KubeStore*>(&store);
    if (server == nullptr) {
        if (purpose == Purpose::change) lock_directory(store, operation_);
        return;
    }
    const auto lease = lease_options(options, errand.ns, errand.module, errand.lineage);
    auto rules = work_rules(options, errand.ns);
    rules.insert(rules.end(), errand.rights.begin(), errand.rights.end());
    const auto& images = kube::resources::k_module_images_configs;
    if (options.runner == upgrade::k_runner_operator && server->client().serves(images))
        for (const char* verb : {"get", "list", "watch"}) rules.push_back({verb, images.group, images.plural, "", errand.ns, ""});
    limit_writes(options, store);
    server->require_rights(rules);
    require_operator(options, *server, errand);
    if (purpose == Purpose::look) return;
    auto keeper = std::make_unique<kube::LeaseKeeper>(lease_client(*server, api_timeout_), lease);
    if (const auto holder = args_.get("break-lock")) keeper->break_holder(*holder);
    const auto mine = origin_of(lease.holder);
    taking_lease_ = true;
    // The record's lock is ours: an earlier process of this very run on this host is gone.
    keeper->acquire([&](const std::string& holder) { return origin_of(holder) == mine; },
                    [&](const kube::LeaseState& other) {
                        if (context_.verbosity < 0) return;
                        context_.console.err(fmt::format("note: Lease {}/{} is held by {}; looking whether that is still alive\n",
                                                         lease.namespace_, lease.name, base::escape(other.holder)));
                    });
    taking_lease_ = false;
    lease_ = std::move(keeper);
}

Session::~Session() {
    if (lease_ && stopped()) lease_->hurry();
}

std::unique_ptr<kube::Client> Session::lease_client(cluster::KubeStore& server, std::chrono::milliseconds api_timeout) {
    kube::ClientOptions quiet;
    quiet.request_timeout = std::chrono::seconds(5);
    quiet.api_timeout = api_timeout;
    quiet.credentials = server.client().credentials();
    // To renew it, and to give it up, is wanted in any case.
    quiet.stop_waiting = [this] { return taking_lease_ && stopped(); };
    return kube::make_client(server.client().connection(), clock_, random_, std::move(quiet));
}

void Session::free_ended_lease(const upgrade::Run& run) {
    try {
        if (directory_.holder()) return;  // who is at work on this record frees it
        const auto store = open_cluster(cluster_place(run.cluster_place));
        auto* server = dynamic_cast<cluster::KubeStore*>(store.get());
        if (server == nullptr) return;
        const auto options = lease_options(run.options, run.module_namespace, run.module_name, run.lineage);
        const auto client = lease_client(*server, std::min<std::chrono::milliseconds>(std::chrono::seconds(5), api_timeout_));
        kube::Lease lease(*client, options);
        const auto left = lease.look();
        if (!left || origin_of(left->holder) != origin_of(options.holder)) return;
        lease.break_holder(left->holder);
        if (!lease.try_acquire()) lease.remove();
    } catch (const Error&) {
        return;  // nobody needs it, and it runs out by itself
    }
}

void Session::limit_writes(const upgrade::Options& options, cluster::ClusterStore& store) {
    auto* server = dynamic_cast<cluster::KubeStore*>(&store);
    if (server != nullptr && options.runner == upgrade::k_runner_operator) server->limit_writes(cluster::KubeStore::Writes::labels);
}

void Session::require_images(const upgrade::Run& run, cluster::ClusterStore& store) {
    constexpr std::chrono::seconds k_patience{15};
    auto* server = dynamic_cast<cluster::KubeStore*>(&store);
    if (server == nullptr || run.options.runner != upgrade::k_runner_operator) return;
    std::set<std::string> images;
    for (const auto& node : run.nodes)
        if (node.current_version != run.to_version) images.insert(node.target_image);
    if (images.empty()) return;
    const auto words = cluster::look_for_images(server->client(), {run.module_namespace, run.module_name}, {images.begin(), images.end()}, k_patience);
    if (words.lacking.empty()) return;
    Error error(Exit::checks_failed, "image-not-found-by-kmm",
                fmt::format("KMM has not found {}: it would unload the old version and load nothing",
                            words.lacking.size() == 1 ? "the image" : fmt::format("{} images", words.lacking.size())));
    for (const auto& [image, word] : words.lacking) error.detail(image, word.empty() ? "not looked at yet" : word);
    throw error.hint(fmt::format("push it, then start again once it is found: kubectl get moduleimagesconfigs -n {} {} -o yaml",
                                 run.module_namespace, run.module_name));
}

void Session::require_operator(const upgrade::Options& options, cluster::KubeStore& server, const Errand& errand) {
    const bool is_operated = options.runner == upgrade::k_runner_operator;
    if (!options.operator_said.empty() || (!is_operated && options.runner != "self")) return;
    const auto signs = cluster::look_for_operator(server.client());
    if (!is_operated && !signs.pods.empty())
        throw Error(Exit::checks_failed, "operator-present",
                    fmt::format("KMM's operator is at work in {} (Pod {}): it would load and unload Module {}/{} as well", server.describe(),
                                signs.pods.front().name, errand.ns, errand.module))
            .detail("known by", signs.pods.front().sign)
            .hint("--via operator sets the version labels and lets it work; --operator absent if it leaves this Module alone");
    if (is_operated && !signs.any())
        throw Error(Exit::checks_failed, "operator-missing",
                    fmt::format("nothing in {} tells of KMM's operator: no Pod of it, no NodeModulesConfig that it wrote", server.describe()))
            .detail("looked for", fmt::format("Pods labelled {}=kmm, named kmm-operator-controller, or of the image "
                                              "kernel-module-management-operator", cluster::k_label_part_of))
            .hint("--via self loads and unloads by worker Pods; --operator present if it is there all the same");
}

std::string lineage_of_holder(const std::string& holder) { return origin_of(holder).second; }

std::string lease_name(const std::string& ns, const std::string& module) { return fmt::format("kmm-upgrade-{}.{}", ns, module); }

kube::Force Session::force() const { return args_.flag("force-conflicts") ? kube::Force::yes : kube::Force::no; }

std::unique_ptr<cluster::PluginStore> Session::make_plugins(const upgrade::Run& run, cluster::ClusterStore& store) const {
    auto* server = dynamic_cast<cluster::KubeStore*>(&store);
    if (server == nullptr || run.options.runner != "self") return nullptr;
    auto plugins = std::make_unique<cluster::PluginStore>(*server, run.module_namespace, run.module_name,
                                                          std::chrono::milliseconds(run.options.node_timeout_ms));
    static_cast<void>(plugins->apply(force()));
    return plugins;
}

std::unique_ptr<cluster::NodeRunner> Session::make_runner(const upgrade::Options& options, cluster::ClusterStore& store,
                                                          const Errand& errand) const {
    const auto leased = [this](std::unique_ptr<cluster::NodeRunner> runner) -> std::unique_ptr<cluster::NodeRunner> {
        if (!lease_) return runner;
        return std::make_unique<LeasedRunner>(std::move(runner), [this] { require_lease(); });
    };
    if (options.runner == "local")
        return leased(std::make_unique<cluster::LocalRunner>(options.worker.empty() ? "kmm-worker" : options.worker));
    if (options.runner == upgrade::k_runner_operator) return std::make_unique<NoRunner>();
    if (options.runner == "self") {
        auto* server = dynamic_cast<cluster::KubeStore*>(&store);
        if (server == nullptr) throw bug("worker Pods without an API server");
        return std::make_unique<cluster::PodRunner>(
            server->client(),
            cluster::PodRunnerOptions{errand.ns, errand.module, options.worker_image, errand.service_account, errand.lineage,
                                      [this](const std::string& line) { context_.console.err(fmt::format("warning: {}\n", line)); }});
    }
    cluster::SshOptions ssh;
    ssh.config_file = options.ssh_config;
    if (!options.worker.empty()) ssh.worker_command = options.worker;
    return leased(std::make_unique<cluster::SshRunner>(ssh));
}

}  // namespace kmm::tool_upgrade
