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
    int signal = 0;  ///< when completed without a document: the signal that ended kmm-worker, k_some_signal if only
                     ///< that is known
    bool started =
        true;  ///< when completed: false if the login shell or a forced command ended before it started kmm-worker
    bool of_worker = true;     ///< false: `document` is an Error of this program about the call, not the node's word
    bool is_brought = false;   ///< what was started there is a bundle that this program brought
    value::Node document;      ///< WorkerResult, ModuleStatus, Node facts or Error; null when there was none
    std::string transport;     ///< last lines of the transport's own stderr, for messages
    std::string found;         ///< when completed without a document: the beginning of the standard output, escaped
    std::string hint;          ///< what to do about a call that did not complete, "" for nothing in particular
};

/// A signal whose number the transport does not report.
inline constexpr int k_some_signal = -1;

class NodeRunner {
public:
    virtual ~NodeRunner() = default;
    /// Runs to the end or the timeout. Never throws for what happens on the node; throws Error when the transport
    /// itself is not usable at all (no ssh client). Thread safe: different nodes may be called at the same time.
    [[nodiscard]] virtual WorkerReply run(const WorkerCall& call) = 0;
    /// "self", "ssh" or "local".
    [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace kmm::cluster
