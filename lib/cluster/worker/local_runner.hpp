// SPDX-License-Identifier: Apache-2.0
// Runs kmm-worker on this very host.
#pragma once

#include <string>

#include "cluster/seam/runner.hpp"

namespace kmm::cluster {

/// For the one node that is this host; the caller makes sure of that. A call is never `unreachable`.
class LocalRunner final : public NodeRunner {
public:
    /// `worker_command`: program and leading words, split at blanks, looked up in PATH.
    explicit LocalRunner(std::string worker_command = "kmm-worker");
    /// Errors: not_found "command-not-found" when there is no such program.
    [[nodiscard]] WorkerReply run(const WorkerCall& call) override;
    [[nodiscard]] std::string describe() const override { return "local"; }

private:
    std::string worker_command_;
};

}  // namespace kmm::cluster
