// SPDX-License-Identifier: Apache-2.0
// What a node keeps of earlier upgrades goes once it runs what this one has brought.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/text.hpp"
#include "upgrade/drive_kubernetes/kubernetes_actor.hpp"

namespace kmm::drive {

std::string KubernetesActor::prune(const std::string& name, const Deadline& deadline) {
    // Snapshots are read again. Once a node has not answered, the others are not waited for as long.
    constexpr std::chrono::milliseconds k_patience{300'000}, k_short_patience{30'000};
    const auto patience = has_prune_hung_ ? k_short_patience : k_patience;
    const auto backup = upgrade::kubernetes::read(recorder_.node(name)).backup;
    if (backup.empty()) return "";
    const auto reply =
        agent_.step_once(name, {"prune", "--name", backup, "--keep", std::to_string(subject_.keep_backups)},
                         std::min(patience, deadline.left()));
    if (!reply.value) {
        if (interrupted_()) throw Leave{StepEnd::left};
        if (!reply.settled()) has_prune_hung_ = true;
        tell(name, "not-pruned: " + reply.error->message());
        return "";
    }
    if (const auto* warnings = reply.value->find("warnings"); warnings != nullptr)
        for (const auto& warning : warnings->items()) tell(name, base::escape(warning.text()));
    return reply.value->get_string({"outcome"}) == "already" ? "" : "; " + reply.value->get_string({"message"});
}

}  // namespace kmm::drive
