// SPDX-License-Identifier: Apache-2.0
// Runs kmm-worker on nodes through the system's OpenSSH client.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "cluster/seam/runner.hpp"
#include "cluster/worker/worker_bundle.hpp"

namespace kmm::cluster {

struct SshOptions {
    std::string config_file;                    ///< ssh -F; "" = the user's own configuration
    std::chrono::seconds connect_timeout{10};   ///< for TCP and the key exchange
    std::string worker_command = "kmm-worker";  ///< path on the node; words are split at blanks ("sudo -n kmm-worker")
    std::string ssh_command = "ssh";            ///< looked up in PATH
    /// installed: `worker_command`. bundle: the bundle. either: kmm-worker of the node if it is there and has this
    /// program's version, else the bundle.
    enum class Worker { installed, bundle, either } worker = Worker::installed;
    std::string prefix;  ///< words before what runs a bundle, split at blanks: "sudo -n"
    std::string version;  ///< of this program, as kmm-worker --version names it
    std::function<const WorkerBundle&()> bundle;  ///< asked when the first node needs it, by any thread; may throw
    std::function<void(const std::string&)> tell;  ///< notes for people, by any thread; empty for none
};

/// Host = node name; the user's ssh_config maps it. Never asks (BatchMode). The node needs a POSIX sh. Arguments reach
/// the worker byte for byte, the stdin text only through stdin: nothing secret is ever in an argument.
///
/// What a login shell prints before or after the worker's document is skipped. A call whose exit code or signal the
/// node reported is `completed`, with or without a document. Another one counts as `unreachable` only when it is proven
/// that nothing ran: ssh's own log (-v) has no "Sending command", no shared connection was in use, and the node has not
/// announced the worker's start on stderr.
///
/// A bundle is brought to a node that does not have it, at most once a call; what is in the way is the reply
/// ("worker-not-brought"). A worker of another version than `version` is told of, once for each node.
class SshRunner final : public NodeRunner {
public:
    explicit SshRunner(SshOptions options);
    /// Errors: data "bad-value" for a node name that is no host name; command-not-found when there is no ssh client.
    [[nodiscard]] WorkerReply run(const WorkerCall& call) override;
    [[nodiscard]] std::string describe() const override { return "ssh"; }

private:
    [[nodiscard]] WorkerReply run_installed(const WorkerCall& call);
    [[nodiscard]] WorkerReply run_bundle(const WorkerCall& call, const WorkerBundle& bundle);
    /// What is in the way of the bundle; nullopt once it is there.
    [[nodiscard]] std::optional<WorkerReply> bring(const WorkerCall& call, const WorkerBundle& bundle) const;
    void tell_of_version(const std::string& node, const std::string& found, const std::string& what);

    SshOptions options_;
    std::mutex mutex_;
    std::set<std::string> told_;     ///< nodes that were asked for the version of their worker
    std::set<std::string> needing_;  ///< nodes without a worker of this version
};

}  // namespace kmm::cluster
