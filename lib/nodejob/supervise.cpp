// SPDX-License-Identifier: Apache-2.0
#include "nodejob/supervise.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nodejob/record.hpp"
#include "sys/host.hpp"

namespace kmm::nodejob {
namespace {

constexpr int k_exit_not_run = 127;
constexpr int k_exit_not_begun = 126;  ///< its first command was not run, since it could not outlive the caller

void reset_signals() {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
    sigset_t none{};
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// What goes out with a session or a terminal does not end the supervisor.
void ignore_hangups() {
    reset_signals();
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU}) {
        struct sigaction action {};
        action.sa_handler = SIG_IGN;
        ::sigaction(signal, &action, nullptr);
    }
}

/// Standard input from nowhere, output to the file; nothing else stays open but `alive`, which is kept over exec.
void arrange_descriptors(const std::string& out_file, int alive) {
    const int nowhere = ::open("/dev/null", O_RDONLY);
    const int out = ::open(out_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    const int open_errno = errno;
    if (nowhere < 0 || out < 0) throw from_errno(open_errno, "cannot open " + out_file);
    const int kept = ::fcntl(alive, F_DUPFD, 3);
    if (kept < 0 || ::dup2(nowhere, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot redirect output to " + out_file);
    }
    if (kept > 3) ::close_range(3, static_cast<unsigned>(kept) - 1, 0);
    ::close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
}

/// What is run all the same after a failure has a file of its own: the end of the job's output is about the failure.
void divert_output(const std::string& file) {
    const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (out < 0) return;
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::close(out);
}

/// A Pod that ends, or a session that is cleaned up, ends all that is in its cgroup. "", or why it could not be left.
std::string leave_cgroup(const std::string& root) {
    if (root.empty() || ::access((root + "/cgroup.controllers").c_str(), F_OK) != 0)
        return "expected cgroup v2 at " + root + ", found none";
    const std::string own = root + "/kmm-node", file = own + "/cgroup.procs";
    ::mkdir(own.c_str(), 0755);
    const int procs = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (procs < 0) return "cannot open " + file + ": " + errno_text(errno);
    const std::string pid = std::to_string(::getpid());
    const ssize_t written = ::write(procs, pid.data(), pid.size());
    const int failed = errno;
    ::close(procs);
    return written < 0 ? "cannot write to " + file + ": " + errno_text(failed) : std::string();
}

/// Nothing is begun that would be ended half-way.
bool may_begin(const SlotPlace& place) {
    const std::string problem = leave_cgroup(place.cgroup_root);
    if (problem.empty() || !place.must_leave_cgroup) return true;
    const std::string told = "the job would end with the Pod that starts it: " + problem + "\n";
    [[maybe_unused]] const ssize_t written = ::write(2, told.data(), told.size());
    return false;
}

[[noreturn]] void become(const Command& command) {
    reset_signals();
    for (const auto& [name, text] : command.environment) ::setenv(name.c_str(), text.c_str(), 1);
    std::vector<std::string> words = command.argv;
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::execvp(pointers.front(), pointers.data());
    const std::string told = "cannot run " + command.argv.front() + ": " + errno_text(errno) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(2, told.data(), told.size());
    ::_exit(k_exit_not_run);
}

/// The wait status of the command.
int run_command(const Command& command) {
    const pid_t pid = ::fork();
    const int fork_errno = errno;
    if (pid < 0) throw from_errno(fork_errno, "cannot start " + command.argv.front());
    if (pid == 0) become(command);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        const int saved = errno;
        if (saved != EINTR) throw from_errno(saved, "cannot wait for " + command.argv.front());
    }
    return status;
}

void supervise(const JobSpec& spec, const std::string& id, const SlotPlace& place, int alive, sys::FileOps& ops,
               sys::Clock& clock) {
    ignore_hangups();
    arrange_descriptors(place.directory + "/out", alive);
    const bool is_apart = may_begin(place);
    const std::int64_t pid = ::getpid();
    sys::write_file_atomically(
        ops, place.directory + "/pid",
        id + " " + std::to_string(pid) + " " + std::to_string(sys::process_start_time(pid).value_or(0)) + "\n");
    JobResult result;
    result.id = id;
    result.exit_code = is_apart ? 0 : k_exit_not_begun;
    for (std::size_t i = 0; i < spec.commands.size(); ++i) {
        const bool failed = result.exit_code != 0 || result.signal != 0;
        if (!is_apart || (failed && !spec.commands[i].always)) continue;
        const off_t output_at = ::lseek(1, 0, SEEK_CUR);  // shared with those that ran before
        const int status = run_command(spec.commands[i]);
        if (failed || status == 0) continue;
        result.failed_command = i;
        result.output_at = static_cast<std::size_t>(std::max<off_t>(output_at, 0));
        result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        result.exit_code = result.signal != 0 ? -1 : WEXITSTATUS(status);
        divert_output(place.directory + "/out.always");
    }
    result.finished = base::format_rfc3339(clock.now_unix());
    sys::write_file_atomically(ops, place.directory + "/result.json", result_text(result));
}

}  // namespace

void start_supervisor(const JobSpec& spec, const std::string& id, const SlotPlace& place, int alive, sys::FileOps& ops,
                      sys::Clock& clock) {
    const pid_t between = ::fork();
    if (between < 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot start a job");
    }
    if (between == 0) {
        ::setsid();
        const pid_t supervisor = ::fork();
        if (supervisor != 0) ::_exit(supervisor < 0 ? 1 : 0);
        try {
            supervise(spec, id, place, alive, ops, clock);
        } catch (const std::exception& error) {
            const std::string told = std::string("the job stopped: ") + error.what() + "\n";
            [[maybe_unused]] const ssize_t written = ::write(2, told.data(), told.size());
            ::_exit(1);
        }
        ::_exit(0);
    }
    int status = 0;
    while (::waitpid(between, &status, 0) < 0) {
        const int saved = errno;
        if (saved != EINTR) throw from_errno(saved, "cannot start a job");
    }
    if (status != 0) throw Error(Exit::io, "io", "cannot start a job: no process could be made").retryable();
}

}  // namespace kmm::nodejob
