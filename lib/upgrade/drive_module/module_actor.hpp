// SPDX-License-Identifier: Apache-2.0
// The steps of the module procedures: check, cordon, drain, unload, load, validate, uncordon, rollback.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "upgrade/actor_parts/drainer.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive_module/way.hpp"

namespace kmm::drive {

/// Of a run by the operator it does what OperatorWay says, else what WorkerWay says. Thread safe for different nodes.
/// The references outlive it.
class ModuleActor final : public Actor {
public:
    /// `workloads`: those of the cluster of `store`. `silence`: how long a node may take to say how it is before that
    /// is told.
    ModuleActor(cluster::ClusterStore& store, cluster::Workloads& workloads, cluster::NodeRunner& runner,
                Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted,
                std::chrono::milliseconds silence = k_silence);
    ~ModuleActor() override;
    ModuleActor(const ModuleActor&) = delete;
    ModuleActor& operator=(const ModuleActor&) = delete;

    [[nodiscard]] Sight look(const upgrade::NodeStep& step, const Deadline& deadline) override;
    [[nodiscard]] value::Node intent(const upgrade::NodeStep& step) override;
    [[nodiscard]] Done act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) override;
    void explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) override;
    /// A node that has left the cluster.
    [[nodiscard]] std::optional<Error> lost_for_good(const upgrade::NodeStep& step, const Error& error) override;
    [[nodiscard]] value::Node glance(const std::string& node) override;
    /// Nodes whose labels somebody else has changed since they were done ("label-changed"), and those that have lost
    /// their target since, see Way::loss. Errors: those of the store; data if a document that cannot be read hides a
    /// node.
    [[nodiscard]] std::vector<upgrade::Event> confirm() override;
    [[nodiscard]] std::string release(const std::string& node) override;
    /// Of those that the Module selects.
    [[nodiscard]] std::map<std::string, std::string> unavailable() override;

private:
    [[nodiscard]] Done validate(const std::string& name, const Look& seen, const Deadline& deadline);
    [[nodiscard]] Done uncordon(const std::string& name);
    [[nodiscard]] Done roll_back(const std::string& name, const Look& seen, const Deadline& deadline);
    /// Whether a node that cannot be looked at for that reason has left the cluster, and gives no answer.
    [[nodiscard]] bool is_gone(const std::string& name, const Error& why);
    /// The event that labels of a Node that was done have changed; nullopt if they have not.
    [[nodiscard]] std::optional<upgrade::Event> find_change(const api::Node& object);
    [[nodiscard]] upgrade::Event event_of(const Loss& loss, const std::string& name) const;
    /// The version labels of a Node that are not those of the target, and what they are, for people.
    [[nodiscard]] std::vector<std::string> changed_labels(const api::Node& node) const;
    /// Waits for as long as the run asks for, if something new runs there, and looks again. Errors: as
    /// Way::require_target; those of the node.
    void watch(const std::string& name, value::Node facts);
    [[nodiscard]] bool is_cordoned_by_run(const std::string& name);

    upgrade::module::Subject subject_;
    Worker worker_;
    Fleet fleet_;
    StepTools tools_;
    Drainer drainer_;
    std::unique_ptr<Way> way_;
};

}  // namespace kmm::drive
