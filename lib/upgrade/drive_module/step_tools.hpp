// SPDX-License-Identifier: Apache-2.0
// What the steps of a module's upgrade have in common, whoever carries them out on the node.
#pragma once

#include <functional>
#include <string>

#include "cluster/seam/workloads.hpp"
#include "upgrade/actor_parts/cordons.hpp"
#include "upgrade/actor_parts/watchdog.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive/step_runner.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/module_nodes/look.hpp"
#include "upgrade/module_nodes/worker.hpp"

namespace kmm::drive {

/// What all steps need. The references outlive the object.
struct StepTools {
    Fleet& fleet;
    cluster::Workloads& workloads;
    Worker& worker;
    Recorder& recorder;
    sys::Clock& clock;
    std::function<bool()> interrupted;
    const upgrade::module::Subject& subject;        ///< that of the recorder's run
    std::chrono::milliseconds silence = k_silence;  ///< how long a node may take to say how it is before that is told
    Cordons cordons{workloads, recorder};

    [[nodiscard]] const upgrade::Header& run() const noexcept { return recorder.header(); }
    [[nodiscard]] upgrade::module::Node node(const std::string& name) const {
        return upgrade::module::read(recorder.node(name));
    }
    [[nodiscard]] upgrade::Event event(upgrade::EventKind kind, const std::string& node, const std::string& step,
                                       const std::string& to = "") const {
        return node_event(recorder, kind, node, step, to);
    }
    /// The event that a node is planned again if it does not run the boot and kernel of the record; nullopt if it does.
    [[nodiscard]] std::optional<upgrade::Event> reboot_of(const std::string& name, const NodeFacts& facts) const;
    /// Leaves the step as `again`, with reboot_of on record if there is one. Throws Leave. Errors: those of
    /// other_host.
    [[noreturn]] void plan_again(const std::string& name, const NodeFacts& facts);
    /// plan_again if there is a reboot_of.
    void require_same_boot(const std::string& name, const NodeFacts& facts);
    /// The error that there is no such Node in the cluster, also a moment later; nullopt also where a document cannot
    /// be read. Errors: only what is wrong with an API server.
    [[nodiscard]] std::optional<Error> absence_of(const std::string& name);
    /// The administrator's version label of a node is still what it was when the run began, or the target already, when
    /// a step begins that may set it: nobody else's change is overwritten unseen. Errors: locked "label-changed".
    void require_label(const std::string& name);
};

/// What a step finds out, as facts of its `done` event, with "message" for people.
using Facts = value::Node;

/// "unversioned" for a version without a name.
[[nodiscard]] std::string shown(const std::string& version);
/// What runs on the node, in words of the record: the target's or the previous version, "" for nothing, "unknown".
[[nodiscard]] std::string version_of(const upgrade::Header& run, const upgrade::module::Node& node,
                                     const LiveModule& live);

}  // namespace kmm::drive
