// SPDX-License-Identifier: Apache-2.0
// What the steps of a procedure do. When they are called, and what is recorded of them, is the business of
// StepRunner and Driver.
#pragma once

#include <any>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/engine/event.hpp"
#include "upgrade/engine/planner.hpp"

namespace kmm::drive {

/// How a step ended. `again`: the node was found changed and is planned again. `left`: a person asked to stop; the step
/// stays open in the record and is settled by the next resume.
enum class StepEnd { done, failed, again, left };

/// Thrown by an Actor inside of a step to leave it in another way than done or failed.
struct Leave {
    StepEnd end;
};

/// What a look before a step found.
struct Sight {
    bool is_interrupted = false;            ///< a person asked to stop: nothing is recorded
    std::optional<Error> error;             ///< the node could not be looked at: the step is begun and fails with it
    std::optional<upgrade::Event>
        changed;  ///< the node is not what the record says: recorded instead of the step, which is planned again
    std::optional<upgrade::Event> left;     ///< what a step that was cut off has left: recorded before the step
    std::any seen;                          ///< the actor's own
};

/// What a step that went well has done.
struct Done {
    value::Node facts;                      ///< a mapping of what is to be recorded of the node, or null
    std::string message;                    ///< for people
    std::string state;                      ///< the node's state from now on, "": that of the step
};

/// What a rollback does with a node that has left the cluster and gives no answer: it must not keep the others from
/// going back.
[[nodiscard]] Done leave_gone(const std::string& name);

/// Every action can be repeated: it compares before it changes, so that a step that was cut off anywhere is begun again
/// after a look. Thread safe for different nodes. It may record `observed` events on its own while it acts. `step`
/// names a node, but where said otherwise.
class Actor {
public:
    virtual ~Actor() = default;
    /// Looks before a step. Errors: those that end the run (cluster::ends_run).
    [[nodiscard]] virtual Sight look(const upgrade::NodeStep& step, const Deadline& deadline) = 0;
    /// What holds as soon as the step is begun, as facts of its intent.
    [[nodiscard]] virtual value::Node intent(const upgrade::NodeStep& step) = 0;
    /// Carries the step out and proves it. A step with the node "" is one of the run itself, and was not looked at: it
    /// may have been cut off before and looks on its own. Errors: recorded as the failure of the step, but for those
    /// that end the run and "interrupted". Throws Leave.
    [[nodiscard]] virtual Done act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) = 0;
    /// Completes the record of a failure: message, facts. May undo what nobody should find. Errors: those that end the
    /// run.
    virtual void explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) = 0;
    /// Why the run goes on without a node that a step has failed on; nullopt: a person decides.
    [[nodiscard]] virtual std::optional<Error> lost_for_good(const upgrade::NodeStep& step, const Error& error) = 0;
    /// Looks once at a node whose state is open; what was found, as facts. Never fails.
    [[nodiscard]] virtual value::Node glance(const std::string& node) = 0;
    /// Before the run says that all nodes are through: events of nodes that are not what they were when they were done.
    /// Errors: those of the cluster.
    [[nodiscard]] virtual std::vector<upgrade::Event> confirm() = 0;
    /// Before `move`, of the run itself, is recorded: it enters a state or has gone through one. What a walk of nodes
    /// has done is confirmed by then. Outside of the recorder's mutex. Errors: the run pauses with them instead of the
    /// move, which the next resume makes again. Throws Leave.
    virtual void before_move(const upgrade::Event& move) { static_cast<void>(move); }
    /// Before an abort is recorded that would roll these nodes back: whether all of that is possible. Errors: why not;
    /// the run goes on as if nobody had asked. What cannot be found out is no error here. Throws Leave.
    virtual void require_way_back(const std::vector<std::string>& nodes) { static_cast<void>(nodes); }
    /// Gives a node back that the run has cordoned; what came of it, for people. Errors: those of the cluster.
    [[nodiscard]] virtual std::string release(const std::string& node) = 0;
    /// Nodes that take no work now, whoever is the cause: name to "not ready" or "cordoned". Errors: those of the
    /// cluster.
    [[nodiscard]] virtual std::map<std::string, std::string> unavailable() = 0;
};

}  // namespace kmm::drive
