// SPDX-License-Identifier: Apache-2.0
// The steps of the kernel procedure: check, cordon, drain, install, reboot, load, validate, uncordon, rollback.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/seam/workloads.hpp"
#include "upgrade/actor_parts/emptier.hpp"
#include "upgrade/actor_parts/node_drivers.hpp"
#include "upgrade/actor_parts/pool_pauses.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/drive_kernel/drivers.hpp"
#include "upgrade/drive_kernel/reboot.hpp"
#include "upgrade/kernel/subject.hpp"

namespace kmm::drive {

/// Each step looks at the node, acts by kmm-worker there, and is proved by boot id, kernel release and the live
/// modules. Thread safe for different nodes. The references outlive it.
class KernelActor final : public Actor {
public:
    /// `has_kubelets`: Nodes are kept up to date by kubelets, whose word is waited for; else the store gets what nodes
    /// say of themselves. `pools`: those that the run pauses. `others`: drivers that are no Modules, nullptr for none.
    KernelActor(cluster::ClusterStore& store, cluster::Workloads& workloads, cluster::NodeRunner& runner,
                Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted, bool has_kubelets,
                PoolPauses pools, std::unique_ptr<NodeDrivers> others);

    [[nodiscard]] Sight look(const upgrade::NodeStep& step, const Deadline& deadline) override;
    [[nodiscard]] value::Node intent(const upgrade::NodeStep& step) override;
    [[nodiscard]] Done act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) override;
    void explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) override;
    /// A node that has left the cluster.
    [[nodiscard]] std::optional<Error> lost_for_good(const upgrade::NodeStep& step, const Error& error) override;
    [[nodiscard]] value::Node glance(const std::string& node) override;
    /// Nodes whose Node, or host where there are no kubelets, says another kernel than when they were done
    /// ("version-changed"), or another boot where only the run loads modules ("node-rebooted"), or that are not Ready
    /// or give no answer ("node-not-ready"), which is waited for for 2 minutes, or without a driver. Throws Leave.
    [[nodiscard]] std::vector<upgrade::Event> confirm() override;
    void before_move(const upgrade::Event& move) override { pools_.before_move(move, recorder_.header()); }
    [[nodiscard]] std::string release(const std::string& node) override;
    [[nodiscard]] std::map<std::string, std::string> unavailable() override;

private:
    /// What confirm() finds with one look.
    [[nodiscard]] std::vector<upgrade::Event> find_changed();
    /// What of a node that was done is not so any more, with `object`, its Node. Throws Leave.
    [[nodiscard]] std::optional<upgrade::Event> find_change(const upgrade::NodeRecord& node, const api::Node& object);
    /// That a driver, which the node had when it was done, is not live in `boot` any more. Throws Leave.
    [[nodiscard]] std::optional<upgrade::Event> find_lost_driver(const upgrade::NodeRecord& node,
                                                                 const std::string& boot);
    [[nodiscard]] Done check(const std::string& name, const SystemSight& seen, const Deadline& deadline);
    [[nodiscard]] Done reboot(const std::string& name, const SystemSight& seen, const Deadline& deadline);
    /// Before a reboot of a control plane: waits until the others serve. Errors: unhealthy "control-plane-unavailable"
    /// once `patience` is over; those of the store. Throws Leave.
    void await_quorum(const std::string& name, std::chrono::milliseconds patience);
    /// Before a reboot: a node that was uncordoned since its drain, whoever had cordoned it, is cordoned and drained
    /// again. Errors: those of a drain.
    void empty_again(const std::string& name, const Deadline& deadline);
    [[nodiscard]] Done load(const std::string& name, const SystemSight& seen, const Deadline& deadline);
    [[nodiscard]] Done validate(const std::string& name, const SystemSight& seen, const Deadline& deadline);
    [[nodiscard]] Done uncordon(const std::string& name);
    [[nodiscard]] Done roll_back(const std::string& name, const SystemSight& seen, const Deadline& deadline);

    /// Whether the Node was deleted; false where that cannot be found out.
    [[nodiscard]] bool has_no_node(const std::string& name);
    /// Of a node that does not answer, unless it goes back. Errors: not_found "node-gone" if its Node was deleted.
    void require_present(const std::string& name);
    /// Whether there is neither a Node nor an answer from a node that is to go back.
    [[nodiscard]] bool is_gone(const std::string& name);
    /// Whether the way back of the node reboots it, so that its Pods leave first: in a run that drains.
    [[nodiscard]] bool is_emptied_for_rollback(const upgrade::NodeRecord& node) const;
    /// Whether the reboot was asked for in the boot that runs now, and has not come.
    [[nodiscard]] static bool is_going_down(const upgrade::NodeRecord& node, const std::string& boot);
    /// Waits until the Node says boot and kernel of `seen` and is Ready. Errors: timeout "node-not-ready",
    /// "node-differs". Throws Leave.
    void require_node(const std::string& name, const SystemSight& seen, const Deadline& deadline);
    /// Waits until every driver that is no Module and served the node before serves it in its kernel. Errors: unhealthy
    /// "driver-missing"; those of NodeDrivers. Throws Leave.
    void await_others(const std::string& name, const SystemSight& seen, const Deadline& deadline);
    /// Waits for as long as the run asks for, and proves the node again.
    void watch(const std::string& name, value::Node facts);
    /// Errors: unhealthy "kernel-not-booted"; those of Drivers::prove and await_others.
    void prove(const std::string& name, const Deadline& deadline);
    /// What is recorded of a node that was seen.
    [[nodiscard]] static value::Node facts_of(const SystemSight& seen);
    /// Drivers of Modules, for people.
    [[nodiscard]] static std::string text_of(const std::map<std::string, LoadedDriver>& drivers);
    [[nodiscard]] std::optional<std::string> seen_boot(const std::string& node);

    cluster::ClusterStore& store_;
    cluster::Workloads& workloads_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    upgrade::kernel::Subject subject_;
    bool has_kubelets_;
    SystemAgent agent_;
    Drivers drivers_;
    Emptier emptier_;
    PoolPauses pools_;
    std::unique_ptr<NodeDrivers> others_;
    std::mutex mutex_;
    std::map<std::string, std::string> boots_;  ///< of each node at the look before its present step
};

}  // namespace kmm::drive
