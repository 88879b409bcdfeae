// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/ssh_runner.hpp"

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
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cluster/seam/worker_answer.hpp"
#include "cluster/seam/worker_process.hpp"
#include "cluster/worker/worker_bundle.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "sys/trust.hpp"

namespace kmm::cluster {
namespace {

using base::single_quoted;

constexpr int k_ssh_failed = 255;   ///< ssh(1), EXIT STATUS
constexpr int k_not_found = 127;

/// How long a bundle of 15 MB may be on its way.
constexpr std::chrono::minutes k_bring_time{10};

/// Bytes that single quotes do not protect in every login shell: csh ends at a line feed and reads history at `!`, fish
/// reads backslashes. As printf's %b reads them.
std::string for_any_shell(std::string_view script) {
    std::string text;
    for (const char byte : script) {
        if (byte == '\n' || byte == '!' || byte == '\\' || byte == '\'')
            text += fmt::format("\\0{:03o}", static_cast<unsigned char>(byte));
        else
            text += byte;
    }
    return text;
}

/// `script` with a line before it that sets its arguments.
std::string with_arguments(const std::string& script, const std::vector<std::string>& words) {
    std::string text = "set --";
    for (const auto& word : words) text += " " + single_quoted(word);
    return text + "\n" + script;
}

/// One command line for whatever login shell the node has: a POSIX sh, called `name`, that runs `script` with `words`.
std::string remote_command(const std::string& prefix, const std::string& script, const char* name,
                           const std::vector<std::string>& words) {
    // Words that single quotes do not protect are part of the script, which is encoded.
    if (std::any_of(words.begin(), words.end(),
                    [](const auto& word) { return word.find_first_of("\n!\\") != std::string::npos; }))
        return remote_command(prefix, with_arguments(script, words), name, {});
    constexpr std::string_view k_decoding = "s=$(printf %b \"$1\"); shift; eval \"$s\"";
    const auto encoded = for_any_shell(script);
    std::string command = encoded == script ? fmt::format("exec {}sh -c {} {}", prefix, single_quoted(script), name)
                                            : fmt::format("exec {}sh -c {} {} {}", prefix, single_quoted(k_decoding),
                                                          name, single_quoted(encoded));
    for (const auto& word : words) command += " " + single_quoted(word);
    return command;
}

/// Announces the start and becomes the worker.
std::string installed_script() {
    return fmt::format(
        "command -v \"$1\" >/dev/null 2>&1 || {{ echo {} >&2; exit {}; }}; echo {}; echo {} >&2; exec \"$@\"",
        k_missing_marker, k_not_found, k_started_marker, k_started_marker);
}

/// The same for the arguments behind the first, which is the worker's command as a shell reads it: says its version.
std::string asking_script() {
    return fmt::format("v=$(eval \"$1 --version\" 2>/dev/null </dev/null) && echo \"{}$v\" >&2; shift; {}",
                       k_version_marker, installed_script());
}

/// What ssh's log and stderr report, and what is left of both for people.
struct SshLog {
    bool sent = false;     ///< the command may have left this host
    bool shared = false;   ///< an existing master sends the command: its log is not ours
    bool ended = false;    ///< the node reported the command's exit code
    bool killed = false;   ///< the node reported that a signal ended the command
    bool started = false;  ///< the node announced the worker's start
    bool missing = false;  ///< the node has no such program
    std::string version;      ///< what a worker printed for --version
    std::string not_brought;  ///< what is in the way of a bundle
    std::string rest;
};

/// Lines that say nothing of a failure, or less than the one before them.
bool is_chatter(std::string_view line) {
    // "** ": that the server knows no post-quantum key exchange, since 10.1.
    constexpr std::array<std::string_view, 8> k_chatter{
        "OpenSSH_",          "Killed by signal ",      "Authenticated to ",
        "Transferred: sent", "Bytes per second: sent", "Warning: Permanently added ",
        "stdio forwarding failed", "** "};
    return line.ends_with(" bad configuration options") ||
           std::any_of(k_chatter.begin(), k_chatter.end(),
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
        } else if (content.starts_with(k_version_marker)) {
            log.version = content.substr(k_version_marker.size());
        } else if (content.starts_with(base::trim(k_not_brought_marker))) {
            log.not_brought = base::trim(content.substr(k_not_brought_marker.size() - 1));
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

/// What to do about a node that ssh does not log in to, "" for nothing in particular.
std::string login_hint(const SshLog& log, const std::string& by_hand) {
    const auto has = [&](std::string_view words) { return log.rest.find(words) != std::string::npos; };
    if (has("REMOTE HOST IDENTIFICATION HAS CHANGED"))
        return "its host key is not the one in known_hosts: find out why, then remove the old one with ssh-keygen -R";
    if (has("Host key verification failed")) return "log in once to check and accept its host key: " + by_hand;
    return has("Permission denied (") ? "ssh must log in without a question: " + by_hand : std::string();
}

WorkerReply reply_of(const sys::ProcessResult& result, const SshLog& log, const std::string& by_hand) {
    ChildLog child;
    child.end = end_of(result, log);
    child.started = log.started || log.missing;
    child.text = log.rest;
    auto reply = judge(result, child);
    if (child.end == ChildLog::End::unreachable) reply.hint = login_hint(log, by_hand);
    return reply;
}

/// The words of a command, each quoted, with a blank behind each.
std::string quoted_words(const std::string& command) {
    std::string text;
    for (const auto word : base::split(command, ' '))
        if (!word.empty()) text += single_quoted(word) + " ";
    return text;
}

/// One call of ssh.
struct Heard {
    sys::ProcessResult result;
    SshLog log;
    std::string by_hand;  ///< a command for people that logs in to the same node
    [[nodiscard]] WorkerReply reply() const { return reply_of(result, log, by_hand); }
};

/// A configuration for people may run a command of its own, or none, and take the input away. Clients before 7.6 know
/// the first of these options only by its name, those before 8.7 none of the others.
constexpr std::array<const char*, 4> k_session_options{"RemoteCommand=none", "SessionType=default", "StdinNull=no",
                                                      "ForkAfterAuthentication=no"};

/// Whether the client refused an option of its command line. It has not connected then.
bool lacks_option(const sys::ProcessResult& result) {
    return result.exit_code == k_ssh_failed && result.err.find("command-line") != std::string::npos &&
           result.err.find("Bad configuration option") != std::string::npos;
}

Heard execute(const SshOptions& ssh, const WorkerCall& call, const std::string& script,
              const std::vector<std::string>& words, const char* name = "kmm-worker") {
    sys::ProcessSpec spec;
    spec.argv = {ssh.ssh_command,
                 "-v",
                 "-T",
                 "-o",
                 "BatchMode=yes",
                 "-o",
                 fmt::format("ConnectTimeout={}", ssh.connect_timeout.count()),
                 "-o",
                 "ServerAliveInterval=5",
                 "-o",
                 "ServerAliveCountMax=3"};
    // Before the configuration file, which these win over: the node gets neither keys nor a way back.
    for (const char* closed :
         {"ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "Tunnel=no", "PermitLocalCommand=no"}) {
        spec.argv.insert(spec.argv.end(), {"-o", closed});
    }
    if (!ssh.config_file.empty()) spec.argv.insert(spec.argv.end(), {"-F", ssh.config_file});
    spec.stdin_text = call.stdin_text;
    if (call.timeout.count() > 0) spec.timeout = call.timeout;
    const std::vector<std::string> target{"--", call.node,
                                          remote_command(quoted_words(ssh.prefix), script, name, words)};
    const auto run_once = [&](const std::vector<std::string>& options, std::size_t session_options) {
        auto now = spec;
        for (std::size_t i = 0; i < session_options; ++i)
            now.argv.insert(now.argv.end(), {"-o", k_session_options[i]});
        now.argv.insert(now.argv.end(), options.begin(), options.end());
        now.argv.insert(now.argv.end(), target.begin(), target.end());
        sys::require_trusted_program(now.argv.front());
        return sys::run_process(now);
    };
    const auto run_with = [&](const std::vector<std::string>& options) {
        auto result = run_once(options, k_session_options.size());
        for (const auto fewer : {std::size_t{1}, std::size_t{0}})
            if (lacks_option(result)) result = run_once(options, fewer);
        return result;
    };
    const LogFile file;
    Heard heard;
    const auto file_option = ssh.config_file.empty() ? std::string() : " -F " + single_quoted(ssh.config_file);
    heard.by_hand = fmt::format("ssh{} {} true", file_option, call.node);
    heard.result =
        run_with(file.path().empty() ? std::vector<std::string>() : std::vector<std::string>{"-E", file.path()});
    // A client in another namespace, or of another user, cannot open it. It has not connected.
    if (heard.result.exit_code == k_ssh_failed && heard.result.err.find("Couldn't open logfile") != std::string::npos)
        heard.result = run_with({});
    read_log(file.text(), heard.log);
    read_log(heard.result.err, heard.log);
    return heard;
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
    if (options_.worker == SshOptions::Worker::installed) return run_installed(call);
    const bool needs = options_.worker == SshOptions::Worker::bundle || [&] {
        const std::lock_guard lock(mutex_);
        return needing_.contains(call.node);
    }();
    if (!needs) {
        const auto heard = execute(options_, call, own_worker_script(options_.version), call_words(call));
        if (!heard.log.missing) return heard.reply();
        const std::lock_guard lock(mutex_);
        needing_.insert(call.node);
        if (!heard.log.version.empty())
            tell_of_version(call.node, heard.log.version,
                            fmt::format("kmm-worker {} is brought along", options_.version));
    }
    try {
        return run_bundle(call, options_.bundle());
    } catch (const Error& error) {
        if (is_interruption(error.exit())) throw;
        return error_reply(error);
    }
}

WorkerReply SshRunner::run_installed(const WorkerCall& call) {
    const bool asks = !options_.version.empty() && [&] {
        const std::lock_guard lock(mutex_);
        return told_.insert(call.node).second;
    }();
    auto words = worker_argv(options_.worker_command, call);
    const auto name = words.front();
    if (asks) words.insert(words.begin(), quoted_words(options_.worker_command));
    auto heard = execute(options_, call, asks ? asking_script() : installed_script(), words, "sh");
    if (heard.log.missing && !heard.log.started) heard.log.rest += name + ": command not found on the node\n";
    if (!heard.log.version.empty())
        tell_of_version(call.node, heard.log.version, "kmm-upgrade here is " + options_.version);
    return heard.reply();
}

WorkerReply SshRunner::run_bundle(const WorkerCall& call, const WorkerBundle& bundle) {
    auto words = call_words(call);
    words.insert(words.begin(), bundle.digest);
    auto heard = execute(options_, call, bundle_script(), words);
    if (heard.log.missing && !heard.log.started) {
        if (auto obstacle = bring(call, bundle)) return std::move(*obstacle);
        heard = execute(options_, call, bundle_script(), words);
    }
    auto reply = heard.reply();
    reply.is_brought = true;
    return reply;
}

std::optional<WorkerReply> SshRunner::bring(const WorkerCall& call, const WorkerBundle& bundle) const {
    WorkerCall carry;
    carry.node = call.node;
    carry.stdin_text = bundle.bytes;
    carry.timeout = k_bring_time;
    const auto heard = execute(options_, carry, bring_script(), {bundle.digest, bundle.machine});
    if (!heard.log.not_brought.empty()) return error_reply(not_brought(call.node, heard.log.not_brought, bundle));
    if (!heard.result.timed_out && heard.result.signal == 0 && heard.result.exit_code == 0) return std::nullopt;
    auto reply = heard.reply();
    // Nothing was asked of the node yet, wherever the connection was lost.
    if (reply.end == CallEnd::unknown) reply.end = CallEnd::unreachable;
    return reply;
}

void SshRunner::tell_of_version(const std::string& node, const std::string& found, const std::string& what) {
    if (!options_.tell || !found.starts_with("kmm-worker ") || found == "kmm-worker " + options_.version) return;
    options_.tell(fmt::format("node {} has {}, {}", node, base::escape(found), what));
}

}  // namespace kmm::cluster
