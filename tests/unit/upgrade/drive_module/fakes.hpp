// SPDX-License-Identifier: Apache-2.0
// A cluster in memory and nodes that behave as kmm-worker's contract says, with faults on demand.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "base/error.hpp"
#include "cluster/seam/runner.hpp"
#include "cluster/seam/store.hpp"
#include "cluster/seam/workloads.hpp"
#include "support/mortal_journal.hpp"
#include "support/sanitized.hpp"
#include "sys/clock.hpp"
#include "upgrade/drive/driver.hpp"
#include "upgrade/drive_module/module_actor.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module_nodes/dry_run.hpp"
#include "upgrade/prepare_module/prepare.hpp"
#include "upgrade/prepare_module/prepare_apply.hpp"
#include "value/reader.hpp"

namespace kmm::drive::test {

/// Sanitizers make a walk several times slower: they look at every fourth point where a run may be cut off, the plain
/// build at all.
inline const int k_stride = kmm::test::sanitized() ? 4 : 1;

/// Time that only passes when somebody sleeps.
class FakeClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'790'000'000 + time_.count() / 1000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return time_; }
    bool sleep_for(std::chrono::milliseconds duration) override {
        const std::lock_guard guard(mutex_);
        time_ += duration;
        if (on_sleep) on_sleep();
        return true;
    }
    std::function<void()> on_sleep;

private:
    std::mutex mutex_;
    std::chrono::milliseconds time_{0};
};

class FakeStore final : public cluster::ClusterStore {
public:
    api::Objects objects;
    std::vector<std::string> writes;
    std::string id = "cluster-1";
    std::function<void()> on_write;  ///< before every write; may throw
    std::function<void(std::chrono::milliseconds)> on_news;  ///< whoever waits for news lets others work here

    Diagnostics faults;  ///< of documents that cannot be read

    int whole_reads = 0;

    [[nodiscard]] cluster::Snapshot read() override {
        const std::lock_guard guard(mutex_);
        ++whole_reads;
        return cluster::Snapshot{objects, faults};
    }
    [[nodiscard]] cluster::Snapshot read_about(const cluster::Subject& /*subject*/) override {
        const std::lock_guard guard(mutex_);
        return cluster::Snapshot{objects, faults};
    }
    void patch_node_labels(const std::string& node, const cluster::LabelChange& change,
                           const cluster::LabelChange& expected) override {
        const std::lock_guard guard(mutex_);
        auto& labels = find(node).meta.labels;
        for (const auto& [key, value] : expected) {
            const auto found = labels.find(key);
            const auto now = found == labels.end() ? std::nullopt : std::optional<std::string>(found->second);
            if (now != value) throw Error(Exit::locked, "conflict", "label " + key + " was changed").retryable();
        }
        for (const auto& [key, value] : change) {
            wrote(node + " " + key.substr(key.find('/') + 1) + (value ? "=" + *value : " removed"));
            if (value) labels[key] = *value;
            else labels.erase(key);
        }
    }
    void put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                         const std::optional<std::optional<api::NodeModule>>& spec,
                         const std::optional<std::optional<api::NodeModule>>& status) override {
        const std::lock_guard guard(mutex_);
        api::NodeModulesConfig* config = nullptr;
        for (auto& item : objects.node_modules_configs)
            if (item.meta.name == node) config = &item;
        if (config == nullptr) {
            objects.node_modules_configs.emplace_back();
            config = &objects.node_modules_configs.back();
            config->meta.name = node;
        }
        const auto replace = [&](std::vector<api::NodeModule>& list, const std::optional<api::NodeModule>& entry) {
            std::erase_if(list, [&](const auto& item) { return item.name == name && item.namespace_ == ns; });
            if (entry) list.push_back(*entry);
        };
        if (spec) {
            wrote(node + " spec " + (*spec ? (*spec)->version : "removed"));
            replace(config->spec, *spec);
        }
        if (status) {
            wrote(node + " status " + (*status ? (*status)->version : "removed"));
            replace(config->status, *status);
        }
    }
    void put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                       const std::string& architecture) override {
        const std::lock_guard guard(mutex_);
        wrote(node + " info");
        auto& item = find(node);
        item.kernel_version = kernel;
        item.boot_id = boot_id;
        item.architecture = architecture;
    }
    [[nodiscard]] std::string identity(bool) override { return id; }
    [[nodiscard]] std::uint64_t await_news(std::uint64_t seen, std::chrono::milliseconds timeout) override {
        if (on_news && timeout.count() > 0) on_news(timeout);
        return seen;
    }
    [[nodiscard]] std::string describe() const override { return "memory"; }

    /// As the node lifecycle controller does: the cordon's taint comes and goes with it.
    void put_cordon(const std::string& node, const cluster::Cordon& cordon) {
        const std::lock_guard guard(mutex_);
        auto& item = find(node);
        item.unschedulable = cordon.unschedulable;
        const std::string annotation(api::k_annotation_cordoned_by);
        if (cordon.owner.empty()) item.meta.annotations.erase(annotation);
        else item.meta.annotations[annotation] = cordon.owner;
        std::erase_if(item.taints, [](const auto& taint) { return taint.key == api::k_taint_unschedulable; });
        if (cordon.unschedulable) item.taints.push_back({std::string(api::k_taint_unschedulable), "", "NoSchedule"});
    }

    api::Node& find(const std::string& node) {
        for (auto& item : objects.nodes)
            if (item.meta.name == node) return item;
        throw Error(Exit::not_found, "node-not-found", node);
    }

private:
    void wrote(std::string what) {
        if (on_write) on_write();
        writes.push_back(std::move(what));
    }
    std::recursive_mutex mutex_;  ///< hooks call the store
};

/// Cordons and Pods of the nodes; evicted Pods are gone at once unless `on_evict` says otherwise.
class FakeWorkloads final : public cluster::Workloads {
public:
    explicit FakeWorkloads(FakeStore& store) : store_(store) {}
    std::map<std::string, cluster::Cordon> cordons;
    std::map<std::string, std::vector<api::WorkloadPod>> pods_of;
    std::vector<api::DisruptionBudget> all_budgets;
    std::vector<api::DeviceClaim> all_claims;
    std::vector<std::string> calls;   ///< "node cordon", "node evict NS/NAME"
    std::vector<std::optional<int>> graces;  ///< of every eviction that was asked for
    std::function<void()> on_write;   ///< before and after every write; may throw
    /// May answer an eviction itself.
    std::function<std::optional<cluster::PodEviction>(const api::WorkloadPod&)> on_evict;

    void expect_rights(Leaving) override {}
    cluster::Cordon cordon(const std::string& node, const std::string& owner) override {
        auto& there = cordons[node];
        if (there.unschedulable) return there;
        write(node + " cordon", [&] { store_.put_cordon(node, there = {true, owner}); });
        return there;
    }
    cluster::Cordon uncordon(const std::string& node, const std::string& owner) override {
        auto& there = cordons[node];
        if (there.owner == owner) write(node + " uncordon", [&] { store_.put_cordon(node, there = {}); });
        return there;
    }
    [[nodiscard]] std::vector<api::WorkloadPod> pods(const std::string& node) override { return pods_of[node]; }
    [[nodiscard]] std::vector<api::DisruptionBudget> budgets() override { return all_budgets; }
    [[nodiscard]] std::vector<api::DeviceClaim> claims() override { return all_claims; }
    cluster::PodEviction evict(const api::WorkloadPod& pod, std::optional<int> grace_seconds) override {
        graces.push_back(grace_seconds);
        for (auto& [node, pods] : pods_of) {
            const auto found =
                std::find_if(pods.begin(), pods.end(), [&](const auto& item) { return item.uid == pod.uid; });
            if (found == pods.end()) continue;
            if (on_evict)
                if (auto answer = on_evict(pod)) return *answer;
            write(node + " evict " + pod.full_name(), [&, &list = pods] { list.erase(found); });
            return {};
        }
        return {cluster::PodEviction::Outcome::gone, "", std::nullopt};
    }

private:
    FakeStore& store_;
    template <typename Change>
    void write(std::string what, const Change& change) {
        if (on_write) on_write();
        calls.push_back(std::move(what));
        change();
        if (on_write) on_write();
    }
};

/// Nodes with a kernel, a boot and at most one module.
class FakeNodes final : public cluster::NodeRunner {
public:
    struct Node {
        std::string kernel = "6.1.0-56-amd64", boot = "boot-1";
        std::string live;  ///< srcversion, "" for nothing
        bool reachable = true;
    };
    std::map<std::string, Node> nodes;
    std::map<std::string, std::string> images;  ///< reference -> srcversion of the module in it
    std::vector<std::string> calls;             ///< "node verb"
    /// May answer itself; `act` does what the node would. nullopt: the ordinary answer.
    std::function<std::optional<cluster::WorkerReply>(const cluster::WorkerCall&,
                                                      const std::function<cluster::WorkerReply()>& act)>
        fault;

    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        const std::lock_guard guard(mutex_);
        calls.push_back(call.node + " " + call.args.front());
        if (fault)
            if (auto reply = fault(call, [&] { return act(call); })) return *reply;
        return act(call);
    }
    [[nodiscard]] std::string describe() const override { return "fake"; }

    static cluster::WorkerReply error(int exit, const char* code, const char* message,
                                      std::initializer_list<std::pair<std::string, value::Node>> details = {}) {
        cluster::WorkerReply reply;
        reply.exit_code = exit;
        reply.document = value::Node::mapping({{"kind", "Error"}, {"code", code}, {"message", message}});
        reply.document.set("details", value::Node::mapping(details));
        return reply;
    }
    static cluster::WorkerReply lost(cluster::CallEnd end) {
        cluster::WorkerReply reply;
        reply.end = end;
        return reply;
    }

private:
    cluster::WorkerReply act(const cluster::WorkerCall& call) {
        auto& node = nodes.at(call.node);
        if (!node.reachable) return lost(cluster::CallEnd::unreachable);
        const auto& verb = call.args.front();
        cluster::WorkerReply reply;
        if (verb == "status") {
            auto module =
                value::Node::mapping({{"name", call.args.at(1)}, {"state", node.live.empty() ? "absent" : "live"}});
            if (!node.live.empty()) module.set("srcversion", node.live);
            reply.document =
                value::Node::mapping({{"kind", "ModuleStatus"}, {"modules", value::Node::sequence({module})}});
            reply.document.set(
                "node",
                value::Node::mapping({{"kernel", node.kernel}, {"bootID", node.boot}, {"architecture", "amd64"}}));
            return reply;
        }
        Diagnostics diagnostics;
        const auto documents = value::read_yaml(call.stdin_text, "-", diagnostics);
        const auto config = api::decode_module_config(documents.at(0).root);
        const auto image = images.find(config.container_image);
        if (verb != "unload" && image == images.end()) return error(66, "image-not-found", "image not found");
        if (config.kernel_version != node.kernel) return error(10, "check-failed", "another kernel");
        std::string identity = image == images.end() ? "" : image->second;
        std::string outcome;
        if (verb == "check") {
            outcome = "passed";
        } else if (verb == "load") {
            if (node.live == identity) outcome = "already-loaded";
            else if (!node.live.empty()) return error(13, "module-differs", "another build is live");
            else outcome = "loaded";
            node.live = identity;
        } else {
            outcome = node.live.empty() ? "not-loaded" : "unloaded";
            node.live.clear();
        }
        auto module = value::Node::mapping({{"name", "kmm_hello"}, {"srcversion", identity}, {"main", true}});
        reply.document = value::Node::mapping({{"kind", "WorkerResult"}, {"verb", verb}, {"outcome", outcome}});
        reply.document.set("node", value::Node::mapping({{"bootID", node.boot}, {"kernel", node.kernel}}));
        reply.document.set(
            "image", value::Node::mapping({{"reference", config.container_image}, {"digest", "sha256:" + identity}}));
        reply.document.set("modules", value::Node::sequence({module}));
        return reply;
    }
    std::mutex mutex_;
};

/// A running Pod of a ReplicaSet.
inline api::WorkloadPod make_pod(const std::string& ns, const std::string& name,
                                 const std::string& controller = "ReplicaSet") {
    api::WorkloadPod pod;
    pod.namespace_ = ns;
    pod.name = name;
    pod.uid = "uid-" + name;
    pod.phase = "Running";
    pod.controller_kind = controller;
    pod.controller_name = controller.empty() ? "" : "some";
    return pod;
}

inline api::Module make_module(const std::string& version) {
    api::Module module;
    module.meta.name = "kmm-hello";
    module.meta.namespace_ = "drivers";
    module.selector = {{"role", "gpu"}};
    module.module_loader.emplace();
    auto& container = module.module_loader->container;
    container.version = version;
    container.container_image = "reg/hello:" + version;
    container.modprobe.module_name = "kmm-hello";
    api::KernelMapping mapping;
    mapping.regexp = "^6\\.1\\..*";
    container.kernel_mappings.push_back(mapping);
    return module;
}

/// Three nodes on v1, loaded in this boot, and a Module that says v2.
struct World {
    FakeStore store;
    FakeWorkloads workloads{store};
    FakeNodes nodes;
    FakeClock clock;

    explicit World(int count = 3, bool with_v1 = true) {
        nodes.images = {{"reg/hello:v1", "AAAA1111"}, {"reg/hello:v2", "BBBB2222"}};
        for (int index = 0; index < count; ++index) {
            const auto name = std::string("node-") + static_cast<char>('a' + index);
            api::Node node;
            node.meta.name = name;
            node.meta.labels = {{"role", "gpu"}};
            node.kernel_version = "6.1.0-56-amd64";
            node.boot_id = "boot-1";
            node.architecture = "amd64";
            if (with_v1) {
                node.meta.labels[api::label_version_module("drivers", "kmm-hello")] = "v1";
                node.meta.labels[api::label_version_worker_pod("drivers", "kmm-hello")] = "v1";
                node.meta.labels[api::label_version_schedule_pod("drivers", "kmm-hello")] = "v1";
                node.meta.labels[api::label_ready("drivers", "kmm-hello")] = "";
                node.meta.labels[api::label_version_ready("drivers", "kmm-hello")] = "v1";
                auto entry = resolve_entry(make_module("v1"), node.kernel_version);
                api::NodeModulesConfig config;
                config.meta.name = name;
                config.spec = {entry};
                entry.boot_id = "boot-1";
                config.status = {entry};
                store.objects.node_modules_configs.push_back(config);
            }
            store.objects.nodes.push_back(node);
            nodes.nodes[name].live = with_v1 ? "AAAA1111" : "";
        }
        store.objects.modules.push_back(make_module("v2"));
    }

    [[nodiscard]] upgrade::Run prepare(const upgrade::Options& options = {}, std::vector<std::string> names = {}) {
        StartRequest request;
        request.name = "kmm-hello";
        request.to_version = "v2";
        request.options = options;
        request.lineage = "l";
        request.nodes = std::move(names);
        Worker worker(nodes);
        auto run = drive::prepare(store.read(), worker, clock, request, [](const auto&, const auto&) {}).run;
        run.cluster_identity = store.id;
        return run;
    }

    /// From here on as if there had never been versions; the last node is not selected any more.
    void without_versions() {
        for (auto& node : store.objects.nodes) {
            auto& labels = node.meta.labels;
            for (auto label = labels.begin(); label != labels.end();)
                label = label->first.find("version") != std::string::npos ? labels.erase(label) : std::next(label);
        }
        for (auto& config : store.objects.node_modules_configs)
            for (auto* list : {&config.spec, &config.status})
                for (auto& entry : *list) entry.version.clear();
        store.objects.modules.back().module_loader->container.version.clear();
        store.objects.nodes.back().meta.labels.erase("role");
    }

    [[nodiscard]] upgrade::Run prepare_apply(const upgrade::Options& options = {}) {
        StartRequest request;
        request.options = options;
        request.lineage = "l";
        Worker worker(nodes);
        const auto snapshot = store.read();
        auto works = plan::apply_work(snapshot.objects, plan::complete({}, snapshot.objects));
        std::erase_if(works, [](const auto& work) { return !work.has_work(); });
        auto run =
            drive::prepare_apply(snapshot, worker, clock, request, works.at(0), [](const auto&, const auto&) {}).run;
        run.cluster_identity = store.id;
        return run;
    }

    /// Everything a user could see of the cluster and the nodes, as text.
    [[nodiscard]] std::string dump() const {
        std::string text;
        for (const auto& node : store.objects.nodes) {
            text += node.meta.name + " boot " + node.boot_id + "\n";
            for (const auto& [key, value] : node.meta.labels) text += "  " + key + "=" + value + "\n";
            text += "  live " + nodes.nodes.at(node.meta.name).live + "\n";
            if (const auto found = workloads.cordons.find(node.meta.name);
                found != workloads.cordons.end() && found->second.unschedulable)
                text += "  cordoned by " + found->second.owner + "\n";
            if (const auto found = workloads.pods_of.find(node.meta.name); found != workloads.pods_of.end())
                for (const auto& pod : found->second) text += "  Pod " + pod.full_name() + "\n";
        }
        auto configs = store.objects.node_modules_configs;
        std::sort(configs.begin(), configs.end(),
                  [](const auto& a, const auto& b) { return a.meta.name < b.meta.name; });
        for (const auto& config : configs) {
            for (const auto& entry : config.spec)
                text += config.meta.name + " spec " + entry.config->container_image + "\n";
            for (const auto& entry : config.status)
                text += config.meta.name + " status " + entry.config->container_image + " " + entry.version + " " +
                        entry.boot_id + "\n";
        }
        return text;
    }
};

/// A run being driven in memory.
struct Drive {
    World& world;
    MortalJournal journal;
    Recorder recorder;
    bool stop = false;
    ModuleActor actor;
    Driver driver;

    Drive(World& in, upgrade::Run run, Observer observer = {})
        : world(in),
          recorder(start(run), journal, in.clock, std::move(observer)),
          actor(in.store, in.workloads, in.nodes, recorder, in.clock, [this] { return stop; }),
          driver(actor, recorder, in.clock, [this] { return stop; }) {}

    /// Replays what a killed program left.
    Drive(World& in, const std::vector<value::Node>& entries, Observer observer = {})
        : world(in),
          recorder(replayed(entries), journal, in.clock, std::move(observer)),
          actor(in.store, in.workloads, in.nodes, recorder, in.clock, [this] { return stop; }),
          driver(actor, recorder, in.clock, [this] { return stop; }) {
        journal.entries = entries;
    }

    upgrade::Run start(const upgrade::Run& run) {
        journal.begin(upgrade::encode(run));
        return replayed(journal.entries);
    }
    static upgrade::Run replayed(const std::vector<value::Node>& entries) {
        std::vector<upgrade::TimedPayload> payloads;
        for (const auto& entry : entries) payloads.push_back({"t", entry});
        return upgrade::replay(payloads, upgrade::module::procedures());
    }
    [[nodiscard]] std::string state(const std::string& node) const { return recorder.node(node).state; }
};

}  // namespace kmm::drive::test
