// SPDX-License-Identifier: Apache-2.0
// Drivers that go to a lower version: nothing on a node uses them while they are restarted there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/access.hpp"
#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/drive_recipe/gates.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"
#include "upgrade/recipe/release.hpp"
#include "upgrade/recipe/subject.hpp"

namespace kmm::drive {

/// The taint of a node whose drivers go to a lower version: KEY=true:NoExecute.
inline constexpr std::string_view k_downgrade_taint = "specialresource.openshift.io/downgrade";
/// On such a node: the run that set the taint, as Header::cordon_owner. Only that run removes it.
inline constexpr std::string_view k_downgrade_owner = "kmmtools.dev/downgraded-by";

/// A DaemonSet that loads drivers: the annotation specialresource.openshift.io/state is "driver-container", or it is
/// the copy for a kernel.
[[nodiscard]] bool is_driver(const upgrade::recipe::ReleaseObject& one);
/// Whether a Pod with this spec stays on a node with the taint, however long.
[[nodiscard]] bool tolerates_downgrade(const value::Node& pod_spec);
/// The drivers of `now` tolerate the taint if it is a downgrade. They go on to do so as long as the release before did:
/// a change of the template would restart them.
void tolerate_downgrade(upgrade::recipe::Release& now, const upgrade::recipe::Release* previous, bool is_downgrade);
/// A copy of a DaemonSet whose Pods are replaced only when they are deleted.
[[nodiscard]] value::Node replaced_by_hand(value::Node daemon_set);

/// Nodes with Pods of drivers that the release changes, by state in its order and by name of the node. One list of Pods
/// for each such DaemonSet.
[[nodiscard]] std::vector<upgrade::recipe::DriverNode> driver_nodes(kube::Client& client, Objects& objects,
                                                                    const std::vector<Judged>& judged);

/// What is done on one node. The references outlive it. Every step may be repeated.
class Downgrade {
public:
    /// `owner`: Header::cordon_owner.
    Downgrade(kube::Client& client, Objects& objects, Gates& gates, sys::Clock& clock,
              std::function<bool()> interrupted, Say say, std::string owner);

    /// Whose the taint is.
    enum class Taint { ours, foreign, gone };
    /// Pods of the drivers that run there tolerate the taint from now on; then it is set, unless it is there already.
    /// `gone`: there is no such node.
    [[nodiscard]] Taint taint(const upgrade::recipe::DriverNode& node);
    /// Waits until the Pods that do not tolerate the taint are gone; their number. Errors: timeout "drain-timeout".
    /// Throws Leave.
    [[nodiscard]] std::size_t await_evictions(const std::string& node, const Deadline& deadline);
    /// Deletes the Pods of the drivers on the node that are not of the DaemonSet as it is now, and waits until those
    /// that replace them are ready and have logged what `state` waits for; the number of those deleted. Errors:
    /// unhealthy "not-verified". Throws Leave.
    [[nodiscard]] std::size_t restart(const upgrade::recipe::DriverNode& node, const upgrade::recipe::State& state,
                                      const Deadline& deadline);
    /// Removes the taint if it is ours; what came of it, for people. Errors: those of the API server.
    [[nodiscard]] std::string untaint(const std::string& node);

    /// The rights that it needs beside those on Nodes.
    [[nodiscard]] static std::vector<kube::Rule> rules();

private:
    [[nodiscard]] std::vector<value::Node> pods_on(const std::string& node);
    /// What the driver lacks on the node, "" if it is ready; deletes old Pods.
    [[nodiscard]] std::string restart_one(const std::string& driver, const std::string& node, const value::Node& labels,
                                          const std::string& pattern, std::vector<std::string>& deleted);

    kube::Client& client_;
    Objects& objects_;
    Gates& gates_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    Say say_;
    std::string owner_;
};

}  // namespace kmm::drive
