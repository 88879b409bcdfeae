// SPDX-License-Identifier: Apache-2.0
// Processes of the node itself, not of its containers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kubeadm/node/node.hpp"

namespace kmm::kubeadm {

/// Pids of processes with this name (comm), ascending, that root runs in the mount namespace of pid 1: a container's
/// process of the same name is not the node's. Errors: from_errno if /proc cannot be read, or not well enough to tell
/// (not root).
[[nodiscard]] std::vector<std::int64_t> node_processes(const Place& place, const std::string& name);

/// Whether a process that was started keeps running. Times are of one monotonic clock.
class SteadyWatch {
public:
    enum class Verdict { waiting, steady, failed };

    /// A process that runs at `end` is still given the time to be `steady` that long; one that replaces it is not.
    SteadyWatch(std::chrono::milliseconds end, std::chrono::milliseconds steady) : end_(end), steady_(steady) {}

    /// What was seen at `now`: the pid of the process, nullopt if it does not run.
    [[nodiscard]] Verdict look(std::optional<std::int64_t> pid, std::chrono::milliseconds now);
    /// Different processes that were seen.
    [[nodiscard]] int starts() const noexcept { return starts_; }

private:
    std::chrono::milliseconds end_, steady_;
    std::chrono::milliseconds since_{0};  ///< when pid_ was first seen
    std::int64_t pid_ = 0;
    int starts_ = 0;
};

/// Errors: locked "kubeadm-running" if kubeadm runs that no job of this tool has started. Two of them race.
void require_no_kubeadm(const Place& place);

}  // namespace kmm::kubeadm
