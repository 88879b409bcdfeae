// SPDX-License-Identifier: Apache-2.0
// The seam to the nodes: runs kmm-worker there and brings back its result document.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "value/node.hpp"

namespace kmm::cluster {

struct WorkerCall {
    std::string node;               ///< Node name = host name for ssh
    std::vector<std::string> args;  ///< verb and options, e.g. {"load", "-"}; "-o json" is added by the runner
    std::string stdin_text;         ///< ModuleConfig, optionally followed by "---" and a pull Secret
    std::chrono::milliseconds timeout{};
};

/// How the call ended. `unknown`: the connection was lost, timed out or never came up after the command may have been
/// started; the node must be asked before anything is concluded. `unreachable`: the command certainly did not start.
enum class CallEnd { completed, unknown, unreachable };

struct WorkerReply {
    CallEnd end = CallEnd::completed;
    int exit_code = 0;         ///< of kmm-worker, when completed
    value::Node document;      ///< WorkerResult, ModuleStatus, Node facts or Error; null when there was none
    std::string transport;     ///< last lines of the transport's own stderr, for messages
};

class NodeRunner {
public:
    virtual ~NodeRunner() = default;
    /// Runs to the end or the timeout. Never throws for what happens on the node; throws Error when the transport itself
    /// is not usable at all (no ssh client). Thread safe: different nodes may be called at the same time.
    [[nodiscard]] virtual WorkerReply run(const WorkerCall& call) = 0;
    /// "self", "ssh" or "local".
    [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace kmm::cluster
