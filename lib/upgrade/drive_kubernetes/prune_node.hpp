// SPDX-License-Identifier: Apache-2.0
// What a node keeps of earlier upgrades goes once it runs what this one has brought.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "upgrade/drive/deadline.hpp"
#include "upgrade/drive_kubernetes/agent.hpp"

namespace kmm::drive {

/// Has nodes remove it. A node that gives no answer is waited for a while, once in a run: later ones only shortly.
/// Thread safe for different nodes. The references outlive it.
class NodePruner {
public:
    NodePruner(NodeAgent& agent, std::function<bool()> interrupted, WorkerSteps::Teller tell)
        : agent_(agent), interrupted_(std::move(interrupted)), tell_(std::move(tell)) {}

    /// What was removed beside the newest `keep` backups and that called `backup`, as "; removed 2 old backups", "" for
    /// nothing and where there is no `backup`. What cannot be removed is reported and fails nothing. Throws Leave.
    [[nodiscard]] std::string prune(const std::string& node, const std::string& backup, std::uint64_t keep,
                                    const Deadline& deadline);

private:
    NodeAgent& agent_;
    std::function<bool()> interrupted_;
    WorkerSteps::Teller tell_;
    std::atomic<bool> has_hung_{false};
};

}  // namespace kmm::drive
