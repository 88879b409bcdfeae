// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/pool_pauses.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::drive {

PoolPauses::PoolPauses(kube::Client* client, std::vector<std::string> names, std::string owner)
    : names_(std::move(names)), owner_(std::move(owner)) {
    if (client != nullptr && !names_.empty()) pools_.emplace(*client);
}

std::string PoolPauses::pause() {
    std::vector<std::string> ours, others;
    for (const auto& name : names_)
        if (pools_) (pools_->pause(name, owner_) ? ours : others).push_back(name);
    auto text = ours.empty() ? std::string("nothing was paused") : "paused " + base::join(ours, ", ");
    if (!others.empty()) text += fmt::format("; paused by someone else, or gone: {}", base::join(others, ", "));
    return text;
}

std::string PoolPauses::unpause() {
    std::vector<std::string> ours;
    for (const auto& name : names_) {
        if (!pools_ || !pools_->unpause(name, owner_)) continue;
        const auto pending = pools_->pending_configuration(name);
        ours.push_back(pending.empty() ? name
                                       : fmt::format("{} (its nodes are updated to {} now, and may reboot)", name,
                                                     base::escape(pending)));
    }
    return ours.empty() ? "nothing was paused by this run" : "unpaused " + base::join(ours, ", ");
}

Done PoolPauses::act(std::string_view stage) {
    Done done;
    done.message = stage == upgrade::k_stage_pause_pools ? pause() : unpause();
    return done;
}

void PoolPauses::hold() {
    if (pools_) static_cast<void>(pause());
}

void PoolPauses::before_move(const upgrade::Event& move, const upgrade::Header& run) {
    if (!pools_) return;
    const auto* stage = upgrade::procedure_of(run).table().find_stage(move.step);
    const bool is_walk = stage != nullptr && stage->is_walk();
    const bool is_end_of_abort = move.step == upgrade::k_step_abort && move.kind != upgrade::EventKind::intent;
    if (is_walk && move.kind == upgrade::EventKind::intent) static_cast<void>(pause());
    else if (is_end_of_abort || (is_walk && move.kind == upgrade::EventKind::failed)) static_cast<void>(unpause());
}

}  // namespace kmm::drive
