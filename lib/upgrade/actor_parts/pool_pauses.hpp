// SPDX-License-Identifier: Apache-2.0
// Pools of machines that a run pauses, so that nobody else reboots their nodes while it works on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/live/machine_pools.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/engine/event.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::drive {

/// Every action may be repeated. What someone else has paused is never changed. `client` may be nullptr where there are
/// no pools.
class PoolPauses {
public:
    PoolPauses(kube::Client* client, std::vector<std::string> names, std::string owner);
    /// Of the stages k_stage_pause_pools and k_stage_unpause_pools. Errors: those of the API server.
    [[nodiscard]] Done act(std::string_view stage);
    /// Before a node or state goes back: pauses the pools, as a failure has ended their pause; the end of the abort
    /// ends this one. Errors: those of the API server.
    void hold();
    /// Pools are not paused while a run stands still after a failure, nor once it was aborted; a walk that goes on
    /// pauses them again.
    void before_move(const upgrade::Event& move, const upgrade::Header& run);

private:
    [[nodiscard]] std::string pause();
    [[nodiscard]] std::string unpause();

    std::optional<cluster::MachinePools> pools_;
    std::vector<std::string> names_;
    std::string owner_;
};

}  // namespace kmm::drive
