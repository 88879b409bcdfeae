// SPDX-License-Identifier: Apache-2.0
// The steps of a node beside KMM's operator: one label is set, and what the operator makes of it is waited for.
#pragma once

#include <string>

#include "upgrade/drive_module/way.hpp"
#include "upgrade/module_nodes/operator_view.hpp"

namespace kmm::drive {

/// Nothing is written but the administrator's label version-module and, in a run that repairs, the deletion of a
/// schedule label that keeps KMM from going on; cordons and evictions are ModuleActor's. No worker is called. Waits by
/// the store's news. What is waited for is recorded once it has taken a second, so that `show` has it. Errors of a
/// step, recorded as its failure:
///   unhealthy "operator-timeout"     after the node's time; names what was waited for, and where to look
///   checks_failed "version-labels-stuck", and what else require_operable finds
///   locked "label-changed"           somebody else has set the administrator's label to another version
///   checks_failed "module-moved-on"  the Module has another version than the one that is to be loaded
class OperatorWay final : public Way {
public:
    /// `tools` outlives it.
    explicit OperatorWay(StepTools& tools) : tools_(tools) {}
    [[nodiscard]] LookResult look(const std::string& name, const Deadline& deadline) override;
    [[nodiscard]] std::optional<LiveModule> glance(const std::string& name) override;
    [[nodiscard]] Facts check(const std::string& name, const Look& seen, const Deadline& deadline) override;
    [[nodiscard]] Facts unload(const std::string& name, const Look& seen, const Deadline& deadline) override;
    [[nodiscard]] Facts load(const std::string& name, const Look& seen, const Deadline& deadline) override;
    [[nodiscard]] Facts validate(const std::string& name, const Look& seen) override;
    [[nodiscard]] Facts rollback(const std::string& name, const Look& seen, const Deadline& deadline) override;
    void require_target(const std::string& name, const Look& seen) const override;
    /// It may always pass: the operator loads it again.
    [[nodiscard]] std::optional<Loss> loss(const api::Objects& objects, const std::string& name) override;
    [[nodiscard]] bool sets_worker_label() const noexcept override { return false; }

private:
    /// A reboot in the middle: the way up is planned anew, the way back goes on.
    enum class OnReboot { plan_anew, go_on };
    [[nodiscard]] OperatorView view(const std::string& name) const;
    void wait(const std::string& name, const std::string& version, OperatorGoal goal, OnReboot on_reboot,
              const Deadline& deadline);
    /// Takes the schedule label away that keeps KMM from going on, if the run is to repair. Errors:
    /// "version-labels-stuck" otherwise.
    void mend(const OperatorView& view, const std::string& version);
    /// Names of DaemonSets' Pods that are in the way, " (NAME, NAME)"; "" if they cannot be asked for.
    [[nodiscard]] std::string plugin_pods(const OperatorView& view) const;
    [[nodiscard]] Facts facts_of(const std::string& name, const std::string& message) const;

    StepTools& tools_;
};

}  // namespace kmm::drive
