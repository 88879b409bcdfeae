// SPDX-License-Identifier: Apache-2.0
#include "cluster/ssh_runner.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/worker_process.hpp"
#include "sys/process.hpp"
#include "sys/trust.hpp"

namespace kmm::cluster {
namespace {

constexpr int k_ssh_failed = 255;   ///< ssh(1), EXIT STATUS
constexpr int k_not_found = 127;

/// One command line for whatever login shell the node has: a POSIX sh that announces the start and becomes the worker.
std::string remote_command(const std::vector<std::string>& argv) {
    const auto script = fmt::format(
        "command -v \"$1\" >/dev/null 2>&1 || {{ echo {} >&2; exit {}; }}; echo {} >&2; exec \"$@\"", k_missing_marker,
        k_not_found, k_started_marker);
    std::string command = fmt::format("exec sh -c {} sh", shell_quote(script));
    for (const auto& argument : argv) command += " " + shell_quote(argument);
    return command;
}

/// What ssh's stderr tells, and what is left of it for people.
struct SshLog {
    bool sent = false;     ///< the command may have left this host
    bool started = false;  ///< the node announced the worker's start
    bool missing = false;  ///< the node has no such program
    std::string rest;
};

SshLog read_log(std::string_view text) {
    SshLog log;
    bool shared = false;  // an existing master sends the command: its log is not ours
    for (const auto line : base::split(text, '\n')) {
        const auto content = base::trim(line);
        if (content == k_started_marker) {
            log.started = true;
        } else if (content == k_missing_marker) {
            log.missing = true;
        } else if (content.starts_with("debug1: ")) {
            const auto has = [&](std::string_view words) { return content.find(words) != std::string_view::npos; };
            if (has("Sending command")) log.sent = true;
            if (has("Trying existing master")) shared = true;
            if (has("Connecting to ") || has("Executing proxy command") || has("does not exist")) shared = false;
        } else if (!content.starts_with("OpenSSH_") && !content.starts_with("Killed by signal ") && !content.starts_with("Authenticated to ") &&
                   !content.starts_with("Transferred: sent") && !content.starts_with("Bytes per second: sent")) {
            log.rest += content;
            log.rest += '\n';
        }
    }
    log.sent = log.sent || shared;
    return log;
}

}  // namespace

SshRunner::SshRunner(SshOptions options) : options_(std::move(options)) {
    if (!options_.config_file.empty()) sys::require_trusted(options_.config_file, "ssh configuration");
}

WorkerReply SshRunner::run(const WorkerCall& call) {
    if (!api::is_dns1123_subdomain(call.node)) {
        throw Error(Exit::data, "bad-value", fmt::format("expected a host name, found node '{}'", base::escape(call.node)));
    }
    sys::ProcessSpec spec;
    spec.argv = {options_.ssh_command,
                 "-v",
                 "-T",
                 "-o",
                 "BatchMode=yes",
                 "-o",
                 fmt::format("ConnectTimeout={}", options_.connect_timeout.count()),
                 "-o",
                 "ServerAliveInterval=5",
                 "-o",
                 "ServerAliveCountMax=3"};
    // Before the configuration file, which these win over: the node gets neither keys nor a way back.
    for (const char* closed : {"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "Tunnel=no", "PermitLocalCommand=no"}) {
        spec.argv.insert(spec.argv.end(), {"-o", closed});
    }
    if (!options_.config_file.empty()) spec.argv.insert(spec.argv.end(), {"-F", options_.config_file});
    const auto argv = worker_argv(options_.worker_command, call);
    spec.argv.insert(spec.argv.end(), {"--", call.node, remote_command(argv)});
    spec.stdin_text = call.stdin_text;
    if (call.timeout.count() > 0) spec.timeout = call.timeout;
    const auto result = sys::run_process(spec);

    auto log = read_log(result.err);
    if (log.missing && !log.started && result.exit_code == k_not_found) {
        log.rest += fmt::format("{}: command not found on the node\n", argv[0]);
        return judge(result, Started::no, false, log.rest);
    }
    const bool failed = result.signal == 0 && result.exit_code == k_ssh_failed;
    const bool lost = failed || result.timed_out || result.signal != 0;
    const auto started = log.started || log.sent || !lost ? Started::maybe : Started::no;
    return judge(result, started, failed, log.rest);
}

}  // namespace kmm::cluster
