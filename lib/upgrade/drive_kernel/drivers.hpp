// SPDX-License-Identifier: Apache-2.0
// The kernel modules that a node needs after it has booted another kernel: loaded, and proved by identity.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "cluster/seam/store.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/drive_kernel/reboot.hpp"
#include "upgrade/kernel/subject.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/module_nodes/worker.hpp"

namespace kmm::drive {

/// A Module that is loaded on a node.
struct LoadedDriver {
    std::string kernel_module;
    upgrade::module::Identity identity;  ///< of the live module, which is that of the file of the image
};
/// As the record keeps it, by NAMESPACE/NAME.
[[nodiscard]] std::map<std::string, value::Node> encode(const std::map<std::string, LoadedDriver>& drivers);
/// Inverse of encode.
[[nodiscard]] std::map<std::string, LoadedDriver> decode_drivers(const std::map<std::string, value::Node>& documents);

/// Thread safe for different nodes. The references outlive it.
class Drivers {
public:
    Drivers(cluster::ClusterStore& store, cluster::NodeRunner& runner, sys::Clock& clock,
            std::function<bool()> interrupted, WorkerSteps::Teller tell, upgrade::kernel::Loader loader)
        : store_(store),
          worker_(runner),
          clock_(clock),
          interrupted_(std::move(interrupted)),
          tell_(std::move(tell)),
          loader_(loader) {}

    /// Brings every Module that selects the node into its kernel, those that others need first, or waits until KMM's
    /// operator has. Each must be live with the identity of the file in its image. With Loader::worker, labels and
    /// NodeModulesConfig follow as KMM's controllers write them. Errors: those of resolve_entry, of the worker and of
    /// the guards; unhealthy "driver-missing", "identity-mismatch", "node-rebooted"; timeout "operator-timeout". Throws
    /// Leave.
    [[nodiscard]] std::map<std::string, LoadedDriver> bring(const std::string& node, const SystemSight& seen,
                                                            const Deadline& deadline);
    /// Every one of `drivers` is live as it was. Errors: unhealthy "driver-missing", "identity-mismatch",
    /// "node-rebooted". Throws Leave.
    void prove(const std::string& node, const std::map<std::string, LoadedDriver>& drivers, const std::string& boot,
               const Deadline& deadline);

private:
    struct Wanted;
    [[nodiscard]] std::vector<Wanted> wanted_on(const std::string& node, const std::string& kernel);
    [[nodiscard]] upgrade::module::Identity load(const std::string& node, const Wanted& wanted, const std::string& boot,
                                                 const Deadline& deadline);
    [[nodiscard]] upgrade::module::Identity await_operator(const std::string& node, const Wanted& wanted,
                                                           const std::string& boot, const Deadline& deadline);
    /// The worker's `verb`, asked again while the node is busy or the connection is lost.
    [[nodiscard]] WorkerResult ask(const std::string& verb, const std::string& node, const std::string& input,
                                   const std::string& boot, const Deadline& deadline);
    void require_live(const std::string& node, const std::string& module, const LoadedDriver& driver,
                      const std::string& boot, const Deadline& deadline);

    cluster::ClusterStore& store_;
    Worker worker_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    WorkerSteps::Teller tell_;
    upgrade::kernel::Loader loader_;
};

/// What keeps KMM's operator from having loaded `entry` on the node in its present boot, for people; "" if nothing
/// does. Labels, spec and status must agree: a label alone may be of an earlier boot.
struct NodeView;
[[nodiscard]] std::string operator_lacks(const NodeView& view, const api::NodeModule& entry, const std::string& boot);

}  // namespace kmm::drive
