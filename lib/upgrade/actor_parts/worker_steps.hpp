// SPDX-License-Identifier: Apache-2.0
// Steps of kmm-worker on a node that outlive the connection: asked again until there is an answer.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/seam/runner.hpp"
#include "cluster/seam/worker_answer.hpp"
#include "upgrade/actor_parts/worker_warnings.hpp"
#include "upgrade/drive/deadline.hpp"

namespace kmm::drive {

/// The verbs of one group of kmm-worker.
struct StepGroup {
    std::string name;                      ///< first word of each verb, beside "facts" and the steps
    std::string facts_kind, step_kind;     ///< kinds of their documents
    std::vector<std::string> busy = {"job-running"};  ///< codes of a node that another step is still at work on
};

/// What the transport said last, after a colon; "" for nothing.
[[nodiscard]] std::string transport_cause(const Error& error);

/// not_found "node-gone": there is no Node of that name, and it does not answer; `hint` is what can be done.
[[nodiscard]] Error node_gone(const std::string& node, std::string hint);

/// Thread safe for different nodes. The references outlive it.
class WorkerSteps {
public:
    /// Told of connections that were lost, of what is waited for, and once of each warning in a step's document; `node`
    /// and text.
    using Teller = std::function<void(const std::string& node, const std::string& text)>;
    /// Called when a node has not answered, before it is asked again. Throws what ends the wait.
    using Unanswered = std::function<void(const std::string& node)>;
    WorkerSteps(cluster::NodeRunner& runner, sys::Clock& clock, std::function<bool()> interrupted, Teller tell,
                StepGroup group, Unanswered unanswered = {})
        : runner_(runner),
          clock_(clock),
          interrupted_(std::move(interrupted)),
          tell_(std::move(tell)),
          group_(std::move(group)),
          unanswered_(std::move(unanswered)) {}

    /// Asks for the facts of the node, a second time if the worker was killed before it answered: a question changes
    /// nothing. `options` are those of the verb.
    [[nodiscard]] cluster::Reply<value::Node> facts_once(const std::string& node, std::chrono::milliseconds timeout,
                                                         const std::vector<std::string>& options = {});
    /// Asks until there is an answer. Errors: those of the worker and of `unanswered`; unavailable
    /// "node-unreachable" once `deadline` has passed. Throws Leave.
    [[nodiscard]] value::Node facts(const std::string& node, const Deadline& deadline);
    /// Carries out a step once; `words` follow the name of the group.
    [[nodiscard]] cluster::Reply<value::Node> step_once(const std::string& node, const std::vector<std::string>& words,
                                                        std::chrono::milliseconds timeout,
                                                        const std::string& input = {});
    /// Carries out a step, with `input` on its standard input, and returns its document. A job that an earlier call has
    /// begun is waited for; one that a reboot has ended is begun again, three times in all. `before_again` is called
    /// before each call but the first. Errors: those of the worker, of `unanswered` and of `before_again`; unavailable
    /// "node-unreachable"; timeout "step-timeout". Throws Leave.
    [[nodiscard]] value::Node step(const std::string& node, const std::vector<std::string>& words,
                                   const Deadline& deadline, const std::string& input = {},
                                   const std::function<void()>& before_again = {});
    /// Waits for `wait`, which grows up to 10 s. Throws Leave.
    void pause(std::chrono::milliseconds& wait);

private:
    [[nodiscard]] cluster::Reply<value::Node> call(const std::string& node, const std::vector<std::string>& words,
                                                   const std::string& kind, std::chrono::milliseconds timeout,
                                                   const std::string& input);
    [[nodiscard]] bool is_busy(const Error& error) const;
    void tell_warnings(const std::string& node, const value::Node& document);

    cluster::NodeRunner& runner_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    Teller tell_;
    StepGroup group_;
    Unanswered unanswered_;
    WorkerWarnings warnings_;
};

}  // namespace kmm::drive
