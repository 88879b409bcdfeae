// SPDX-License-Identifier: Apache-2.0
// What is to hold, and to be run, around the steps of a Kubernetes upgrade: patches and hooks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "sys/clock.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/drive_kubernetes/hooks.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::drive {

/// Steps are those of another actor. Before one that needs patches they are asked for; hooks run before and after each
/// state of the run, and before the first and after the last step of a node in it. One of them may run again after an
/// interruption or a retry. Rollbacks have none of it. Thread safe for different nodes.
class AttendedActor final : public Actor {
public:
    /// `between`: called before each state and the first step of a node in it, by several threads. The references
    /// outlive it.
    AttendedActor(std::unique_ptr<Actor> inner, Recorder& recorder, sys::Clock& clock,
                  std::function<bool()> interrupted, std::function<void()> between);

    [[nodiscard]] Sight look(const upgrade::NodeStep& step, const Deadline& deadline) override;
    [[nodiscard]] value::Node intent(const upgrade::NodeStep& step) override { return inner_->intent(step); }
    /// Errors: also checks_failed "patches-missing", "patch-query-failed"; unhealthy "hook-failed".
    [[nodiscard]] Done act(const upgrade::NodeStep& step, const Sight& sight, const Deadline& deadline) override;
    void explain(const upgrade::NodeStep& step, const Error& error, upgrade::Event& failed) override;
    [[nodiscard]] std::optional<Error> lost_for_good(const upgrade::NodeStep& step, const Error& error) override;
    [[nodiscard]] value::Node glance(const std::string& node) override { return inner_->glance(node); }
    [[nodiscard]] std::vector<upgrade::Event> confirm() override { return inner_->confirm(); }
    [[nodiscard]] std::string release(const std::string& node) override { return inner_->release(node); }
    [[nodiscard]] std::map<std::string, std::string> unavailable() override { return inner_->unavailable(); }
    void before_move(const upgrade::Event& move) override;
    void require_way_back(const std::vector<std::string>& nodes) override { inner_->require_way_back(nodes); }

private:
    void require_patches(const upgrade::NodeStep& step) const;
    /// The state of the run that its stage is in while nodes walk through it.
    [[nodiscard]] const upgrade::Stage* stage() const;
    void run_hooks(Hooks::When when, const std::string& node, const Deadline& deadline);

    std::unique_ptr<Actor> inner_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    std::function<void()> between_;
    upgrade::kubernetes::Subject subject_;
    Hooks hooks_;
    std::mutex mutex_;
    std::map<std::string, bool>
        begins_;  ///< whether the step that a node was looked at for is its first one in the stage
};

}  // namespace kmm::drive
