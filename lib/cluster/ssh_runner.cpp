// SPDX-License-Identifier: Apache-2.0
#include "cluster/ssh_runner.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/worker_process.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/process.hpp"
#include "sys/trust.hpp"

namespace kmm::cluster {
namespace {

constexpr int k_ssh_failed = 255;   ///< ssh(1), EXIT STATUS
constexpr int k_not_found = 127;

/// One command line for whatever login shell the node has: a POSIX sh that announces the start and becomes the worker.
std::string remote_command(const std::vector<std::string>& argv) {
    const auto script = fmt::format(
        "command -v \"$1\" >/dev/null 2>&1 || {{ echo {} >&2; exit {}; }}; echo {}; echo {} >&2; exec \"$@\"",
        k_missing_marker, k_not_found, k_started_marker, k_started_marker);
    std::string command = fmt::format("exec sh -c {} sh", shell_quote(script));
    for (const auto& argument : argv) command += " " + shell_quote(argument);
    return command;
}

/// What ssh's log and stderr report, and what is left of both for people.
struct SshLog {
    bool sent = false;     ///< the command may have left this host
    bool shared = false;   ///< an existing master sends the command: its log is not ours
    bool ended = false;    ///< the node reported the command's exit code
    bool killed = false;   ///< the node reported that a signal ended the command
    bool started = false;  ///< the node announced the worker's start
    bool missing = false;  ///< the node has no such program
    std::string rest;
};

bool is_chatter(std::string_view line) {
    constexpr std::array<std::string_view, 6> k_chatter{
        "OpenSSH_",          "Killed by signal ",      "Authenticated to ",
        "Transferred: sent", "Bytes per second: sent", "Warning: Permanently added "};
    return std::any_of(k_chatter.begin(), k_chatter.end(),
                       [&](std::string_view start) { return line.starts_with(start); });
}

/// Reads ssh's own lines. A client that does not know -E writes them to stderr, between those of the node.
void read_log(std::string_view text, SshLog& log) {
    for (const auto line : base::split(text, '\n')) {
        const auto content = base::trim(line);
        const auto has = [&](std::string_view words) { return content.find(words) != std::string_view::npos; };
        if (content == k_started_marker) {
            log.started = true;
        } else if (content == k_missing_marker) {
            log.missing = true;
        } else if (content.starts_with("debug1: ")) {
            if (has("Sending command")) log.sent = true;
            if (has("rtype exit-status")) log.ended = true;
            if (has("rtype exit-signal")) log.killed = true;
            if (has("Trying existing master")) log.shared = true;
            if (has("Connecting to ") || has("Executing proxy command") || has("does not exist")) log.shared = false;
        } else if (!content.empty() && !is_chatter(content)) {
            log.rest += content;
            log.rest += '\n';
        }
    }
}

/// A file in memory for ssh's own log, for -E. Without it ssh's lines and those of the node's programs break into each
/// other.
class LogFile {
public:
    LogFile() : fd_(::memfd_create("kmm-ssh-log", MFD_CLOEXEC)) {
        if (!fd_) return;
        path_ = fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get());
        if (::access(path_.c_str(), W_OK) != 0) path_.clear();
    }
    /// The name ssh can open it by, "" if there is none.
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::string text() const {
        return path_.empty() ? std::string() : sys::read_fd(fd_.get(), "the log of ssh");
    }

private:
    sys::Fd fd_;
    std::string path_;
};

ChildLog::End end_of(const sys::ProcessResult& result, const SshLog& log) {
    const bool has_own_code = !result.timed_out && result.signal == 0 && result.exit_code != k_ssh_failed;
    if (!result.timed_out && result.signal == 0 && log.killed) return ChildLog::End::killed;
    if (has_own_code || (!result.timed_out && result.signal == 0 && log.ended)) return ChildLog::End::ended;
    return log.started || log.sent || log.shared ? ChildLog::End::lost : ChildLog::End::unreachable;
}

}  // namespace

SshRunner::SshRunner(SshOptions options) : options_(std::move(options)) {
    if (!options_.config_file.empty()) sys::require_trusted(options_.config_file, "ssh configuration");
}

WorkerReply SshRunner::run(const WorkerCall& call) {
    if (!api::is_dns1123_subdomain(call.node)) {
        throw Error(Exit::data, "bad-value",
                    fmt::format("expected a host name, found node '{}'", base::escape(call.node)));
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
    for (const char* closed :
         {"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "Tunnel=no", "PermitLocalCommand=no"}) {
        spec.argv.insert(spec.argv.end(), {"-o", closed});
    }
    if (!options_.config_file.empty()) spec.argv.insert(spec.argv.end(), {"-F", options_.config_file});
    const auto argv = worker_argv(options_.worker_command, call);
    spec.stdin_text = call.stdin_text;
    if (call.timeout.count() > 0) spec.timeout = call.timeout;
    const std::vector<std::string> target{"--", call.node, remote_command(argv)};
    const auto run_with = [&](const std::vector<std::string>& options) {
        auto now = spec;
        now.argv.insert(now.argv.end(), options.begin(), options.end());
        now.argv.insert(now.argv.end(), target.begin(), target.end());
        return sys::run_process(now);
    };
    const LogFile file;
    auto result =
        run_with(file.path().empty() ? std::vector<std::string>() : std::vector<std::string>{"-E", file.path()});
    // A client in another namespace, or of another user, cannot open it. It has not connected.
    if (result.exit_code == k_ssh_failed && result.err.find("Couldn't open logfile") != std::string::npos)
        result = run_with({});
    SshLog log;
    read_log(file.text(), log);
    read_log(result.err, log);
    if (log.missing && !log.started) log.rest += fmt::format("{}: command not found on the node\n", argv[0]);
    ChildLog child;
    child.end = end_of(result, log);
    child.started = log.started || log.missing;
    child.text = log.rest;
    return judge(result, child);
}

}  // namespace kmm::cluster
