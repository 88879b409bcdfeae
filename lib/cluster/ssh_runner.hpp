// SPDX-License-Identifier: Apache-2.0
// Runs kmm-worker on nodes through the system's OpenSSH client.
#pragma once

#include <chrono>
#include <string>

#include "cluster/runner.hpp"

namespace kmm::cluster {

struct SshOptions {
    std::string config_file;                    ///< ssh -F; "" = the user's own configuration
    std::chrono::seconds connect_timeout{10};   ///< for TCP and the key exchange
    std::string worker_command = "kmm-worker";  ///< path on the node; words are split at blanks ("sudo -n kmm-worker")
    std::string ssh_command = "ssh";            ///< looked up in PATH
};

/// Host = node name; the user's ssh_config maps it. Never asks (BatchMode). The node needs a POSIX sh. Arguments reach
/// the worker byte for byte, the stdin text only through stdin: nothing secret is ever in an argument.
///
/// What a login shell prints before or after the worker's document is skipped. A call whose exit code or signal the
/// node reported is `completed`, with or without a document. Another one counts as `unreachable` only when it is proven
/// that nothing ran: ssh's own log (-v) has no "Sending command", no shared connection was in use, and the node has not
/// announced the worker's start on stderr.
class SshRunner final : public NodeRunner {
public:
    explicit SshRunner(SshOptions options);
    /// Errors: data "bad-value" for a node name that is no host name; command-not-found when there is no ssh client.
    [[nodiscard]] WorkerReply run(const WorkerCall& call) override;
    [[nodiscard]] std::string describe() const override { return "ssh"; }

private:
    SshOptions options_;
};

}  // namespace kmm::cluster
