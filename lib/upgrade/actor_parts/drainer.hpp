// SPDX-License-Identifier: Apache-2.0
// Getting a node empty: evictions that budgets may hold up, and waiting for what has to end.
#pragma once

#include <functional>
#include <string>

#include "cluster/seam/workloads.hpp"
#include "plan/fleet/drain.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/drive/recorder.hpp"

namespace kmm::drive {

/// What `options` allow a drain to evict.
[[nodiscard]] plan::DrainRules drain_rules_of(const upgrade::Options& options);

/// Thread safe for different nodes. The references outlive it.
class Drainer {
public:
    Drainer(cluster::Workloads& workloads, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted)
        : workloads_(workloads), recorder_(recorder), clock_(clock), interrupted_(std::move(interrupted)) {}
    /// Evicts what `rules` select and waits until it is gone; "2 Pods evicted". What holds it up is recorded, as
    /// `observed` events. Errors: checks_failed "pods-not-evictable", "several-budgets"; timeout "drain-timeout" names
    /// what is still there. Throws Leave.
    [[nodiscard]] std::string drain(const std::string& node, const plan::DrainRules& rules, const Deadline& deadline);

private:
    cluster::Workloads& workloads_;
    Recorder& recorder_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
};

}  // namespace kmm::drive
