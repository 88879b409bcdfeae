// SPDX-License-Identifier: Apache-2.0
// Reads what the gates of a recipe ask for. readiness.hpp judges it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/client.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/recipe/release.hpp"

namespace kmm::drive {

/// The references must outlive it.
class Gates {
public:
    Gates(kube::Client& client, Objects& objects) : client_(client), objects_(objects) {}
    /// What the object still lacks, "" if it is ready: its own kind's rule; of a copy for a kernel, that every node of
    /// the kernel gets a Pod; the annotation wait-for-logs on every Pod, once the rollout of its workload is complete.
    /// Objects that no gate waits for are always ready, and so is a Job that was complete and is gone. Errors: those
    /// of the API server; unhealthy "gate-failed".
    [[nodiscard]] std::string problem(const upgrade::recipe::ReleaseObject& wanted);
    /// What the object lacks by its own kind's rule, whether a gate waits for it or not. Errors: as problem.
    [[nodiscard]] std::string readiness(const upgrade::recipe::ReleaseObject& wanted);
    /// Why Pods of a DaemonSet have not started, as missing_image; "" for other kinds.
    [[nodiscard]] std::string image_problem(const upgrade::recipe::ReleaseObject& wanted);
    /// The same of an object that was ready before and has to stay so: work that ends, as of a Job, is not looked at
    /// again.
    [[nodiscard]] std::string lasting_problem(const upgrade::recipe::ReleaseObject& wanted);

    /// Drivers of `release` that no gate waits for, and what each lacks now.
    [[nodiscard]] std::vector<std::string> unwaited_drivers(const upgrade::recipe::Release& release);

    /// What the log of the Pod's first container lacks of `pattern`, "" if it matches.
    [[nodiscard]] std::string log_problem_of_pod(const value::Node& pod, const std::string& pattern);

    /// What was read before is not used any more: nodes are listed once in between. Forgets idle().
    void look_again();
    /// DaemonSets that are ready as they want no Pod: "DaemonSet drivers/a wants".
    [[nodiscard]] const std::vector<std::string>& idle() const noexcept { return idle_; }

private:
    [[nodiscard]] const std::vector<value::Node>& nodes();
    /// What the live object lacks by its own kind's rule.
    [[nodiscard]] std::string lacks(const value::Node& live);
    /// Of a workload that has fewer Pods than it wants, why the API server refuses them, as for a quota, to be written
    /// behind a sentence; "" if nothing says so. Events that may not be read say nothing.
    [[nodiscard]] std::string refusal_of_pods(const value::Node& live);
    /// Of an object that is not there.
    [[nodiscard]] std::string absence_problem(const value::Node& object) const;
    [[nodiscard]] std::string log_problem(const value::Node& live, const std::string& pattern);

    kube::Client& client_;
    Objects& objects_;
    std::optional<std::vector<value::Node>> nodes_;
    std::set<upgrade::recipe::ObjectId> ended_;  ///< Jobs that were seen to be complete; ttlSecondsAfterFinished
    std::vector<std::string> idle_;
};

}  // namespace kmm::drive
