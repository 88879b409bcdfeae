// SPDX-License-Identifier: Apache-2.0
// Another kernel on a node: installing it, and the reboot into it, proved by boot id and release.
#pragma once

#include <optional>
#include <string>

#include "upgrade/actor_parts/worker_steps.hpp"
#include "upgrade/drive/recorder.hpp"

namespace kmm::drive {

/// What a node says of itself, from the document of `node facts`.
struct SystemSight {
    std::string kernel, boot_id, architecture;
    std::string job = "";  ///< the key of a job that is under way there, "" for none
};
/// Errors: other "worker-failed" for a document without kernel or boot id.
[[nodiscard]] SystemSight read_system(const std::string& node, const value::Node& document);

/// kmm-worker node on nodes. Thread safe for different nodes. The references outlive it.
class SystemAgent {
public:
    SystemAgent(cluster::NodeRunner& runner, sys::Clock& clock, std::function<bool()> interrupted,
                WorkerSteps::Teller tell,
                WorkerSteps::Unanswered unanswered = {});

    /// As WorkerSteps::facts.
    [[nodiscard]] SystemSight facts(const std::string& node, const Deadline& deadline);
    /// Asks once; nullopt without an answer.
    [[nodiscard]] std::optional<SystemSight> glance(const std::string& node, std::chrono::milliseconds timeout);
    /// Runs `command` for `release` as a job of the node, or waits for the job of an earlier call; what came of it, for
    /// people. A node that runs the release is left alone. Errors: those of WorkerSteps::step, as "install-failed".
    /// Throws Leave.
    [[nodiscard]] std::string install(const std::string& node, const std::string& release, const std::string& command,
                                      const Deadline& deadline);
    /// Reboots the node, which runs the boot `before` as far as is known, and returns what it says of itself once it
    /// runs another boot, which must be of the kernel `release`. One that runs that kernel or another boot already is
    /// not rebooted. A lost connection is no failure. Errors: unhealthy "kernel-not-booted"; timeout
    /// "node-not-rebooted" if it still runs `before`, "node-not-back" if it does not answer; those of the worker, as
    /// "reboot-failed". Throws Leave.
    [[nodiscard]] SystemSight reboot_into(const std::string& node, const std::string& release,
                                          const std::string& before, const SystemSight& now, const Deadline& deadline);
    /// As reboot_into, of a node that may run the kernel already.
    [[nodiscard]] SystemSight reboot(const std::string& node, const std::string& release, const std::string& before,
                                     const SystemSight& now, const Deadline& deadline);

private:
    /// Whether the node has said that it was asked; false if nobody knows.
    [[nodiscard]] bool ask_for_reboot(const std::string& node, const std::string& before, const Deadline& deadline);

    sys::Clock& clock_;
    WorkerSteps::Teller tell_;
    WorkerSteps steps_;
};

/// A node that was asked for its facts was not reached, or has answered without a worker's result.
[[nodiscard]] bool is_no_answer(const Error& error);
/// The error that a node does not answer after its reboot, and why the last question failed: timeout "node-not-back".
/// `is_asked`: the node has said that it was asked to reboot; otherwise it may have been.
[[nodiscard]] Error not_back(const std::string& node, const Error& cause, bool is_asked);
/// The node runs `release`. Errors: unhealthy "kernel-not-booted".
void require_kernel(const std::string& node, const SystemSight& seen, const std::string& release);

}  // namespace kmm::drive
