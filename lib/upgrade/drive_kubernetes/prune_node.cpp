// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/prune_node.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "upgrade/drive/actor.hpp"

namespace kmm::drive {

std::string NodePruner::prune(const std::string& node, const std::string& backup, std::uint64_t keep,
                              const Deadline& deadline) {
    if (backup.empty()) return "";
    // Snapshots are read again.
    constexpr std::chrono::milliseconds k_patience{120'000}, k_short_patience{30'000};
    const auto reply = agent_.step_once(node, {"prune", "--name", backup, "--keep", std::to_string(keep)},
                                        std::min(has_hung_ ? k_short_patience : k_patience, deadline.left()));
    if (!reply.value) {
        if (interrupted_()) throw Leave{StepEnd::left};
        if (!reply.settled()) has_hung_ = true;
        tell_(node, "warning: not-pruned: " + reply.error->message());
        return "";
    }
    return reply.value->get_string({"outcome"}) == "already" ? "" : "; " + reply.value->get_string({"message"});
}

}  // namespace kmm::drive
