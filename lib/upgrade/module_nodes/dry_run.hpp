// SPDX-License-Identifier: Apache-2.0
// A cluster and nodes that only write down what would be done to them: the same driver runs on them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cluster/seam/runner.hpp"
#include "cluster/seam/store.hpp"
#include "upgrade/module_nodes/worker.hpp"

namespace kmm::drive {

/// One line a person reads: node and what would be done there.
using ActionSink = std::function<void(const std::string& node, const std::string& action)>;

/// Reads `inner` once and keeps all changes in memory. Each change is passed to the sink. Thread safe.
class DryStore final : public cluster::ClusterStore {
public:
    DryStore(cluster::ClusterStore& inner, ActionSink sink);
    [[nodiscard]] cluster::Snapshot read() override;
    [[nodiscard]] cluster::Snapshot read_about(const cluster::Subject& subject) override;
    void patch_node_labels(const std::string& node, const cluster::LabelChange& change,
                           const cluster::LabelChange& expected) override;
    void put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                         const std::optional<std::optional<api::NodeModule>>& spec,
                         const std::optional<std::optional<api::NodeModule>>& status) override;
    void put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                       const std::string& architecture) override;
    [[nodiscard]] std::string identity(bool create) override;
    [[nodiscard]] std::uint64_t await_news(std::uint64_t seen, std::chrono::milliseconds timeout) override {
        return inner_.await_news(seen, timeout);
    }
    [[nodiscard]] std::string describe() const override { return inner_.describe(); }

private:
    /// The mutex is held.
    api::Node& find_node(const std::string& node);
    cluster::ClusterStore& inner_;
    std::mutex mutex_;
    cluster::Snapshot snapshot_;
    std::map<std::string, std::size_t, std::less<>> nodes_, configs_;  ///< places in the snapshot
    ActionSink sink_;
};

/// Passes facts, status and check on to `inner` (they change nothing on a node) and answers load and unload itself, as
/// a node would on which all goes well. Thread safe if `inner` is.
class DryRunner final : public cluster::NodeRunner {
public:
    DryRunner(cluster::NodeRunner& inner, ActionSink sink) : inner_(inner), sink_(std::move(sink)) {}
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override;
    [[nodiscard]] std::string describe() const override { return inner_.describe(); }

private:
    struct NodeMemory {
        value::Node checked;              ///< last result of check
        std::optional<value::Node> live;  ///< what status says once load or unload was pretended: null when absent
    };
    cluster::NodeRunner& inner_;
    ActionSink sink_;
    std::mutex mutex_;
    std::map<std::string, NodeMemory> memory_;
};

}  // namespace kmm::drive
