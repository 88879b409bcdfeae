// SPDX-License-Identifier: Apache-2.0
// One step: look, intent, act, done or failed. The order in which things are recorded and done stands here, once for
// all procedures.
#pragma once

#include <functional>
#include <string>

#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"

namespace kmm::drive {

/// An event of `node` in its state of now; `to` "" leaves it there.
[[nodiscard]] upgrade::Event node_event(const Recorder& recorder, upgrade::EventKind kind, const std::string& node,
                                        const std::string& step, const std::string& to = "");
/// Records what people are told of `node`; its state stays.
void tell(Recorder& recorder, const std::string& node, std::string text);
/// tell, for those that know no recorder, which outlives it.
[[nodiscard]] std::function<void(const std::string& node, const std::string& text)> teller(Recorder& recorder);

/// Thread safe for different nodes, as its actor is. The references outlive it.
class StepRunner {
public:
    StepRunner(Actor& actor, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted)
        : actor_(actor), recorder_(recorder), clock_(clock), interrupted_(std::move(interrupted)) {}
    /// Runs a step of a node, of the run itself (node ""), or the release of a cordon. What goes wrong on the node or
    /// in the cluster ends as a recorded failure; only a failure of the record is thrown, what ends the run, and one of
    /// release, which the next resume tries again.
    [[nodiscard]] StepEnd run(const upgrade::NodeStep& step);
    /// Looks once at a node whose state is open and records what was found. Never fails the node.
    void observe(const std::string& node);
    /// Looks at the nodes that are done before the run says so; false if some are not any more, which is recorded.
    [[nodiscard]] bool confirm();
    /// True for what no record of a failure settles: it is thrown on.
    [[nodiscard]] bool ends_walk(const Error& error) const;

private:
    [[nodiscard]] StepEnd run_stage(const std::string& stage);
    [[nodiscard]] StepEnd run_node(const upgrade::NodeStep& step);
    void release(const std::string& node);
    void record_failure(const upgrade::NodeStep& step, const upgrade::Step& data, const Error& error);

    Actor& actor_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
};

}  // namespace kmm::drive
