// SPDX-License-Identifier: Apache-2.0
// inject CALL[,CALL...]:signal=KILL|error=ERRNO[:when=N[+]] COMMAND [ARGUMENT...]
//
// Runs COMMAND, whose main thread is killed before, or is given an error instead of, its Nth such system call, or that
// and every later one (N+; every one without `when`). Ends as COMMAND does, as soon as it does; what COMMAND has
// started goes on, untouched.
//
// strace does the same at twice the price: without -f it stops the program at every system call, and with it, which its
// filter
// (--seccomp-bpf) needs, children are counted and hit as well. Here a filter stops only the calls that were asked for.
// Children inherit it and must have a tracer as long as they live: a process of its own that stays behind, and lets
// them through.
//
// x86-64 only. Exit 125: it could not be done.
#include <fcntl.h>
#include <seccomp.h>
#include <sys/ptrace.h>
#include <sys/prctl.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

[[noreturn]] void give_up(const std::string& what) {
    std::fprintf(stderr, "inject: %s\n", what.c_str());
    std::_Exit(125);
}

void need(bool holds, const char* what) {
    if (!holds) give_up(std::string(what) + ": " + std::strerror(errno));
}

struct Wanted {
    std::vector<std::string> calls;
    int error = 0;  ///< 0: kill
    long first = 1, last = -1;  ///< of the calls, from 1; last -1: every later one
};

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> pieces(1);
    for (const char c : text) {
        if (c == separator) {
            pieces.emplace_back();
        } else {
            pieces.back() += c;
        }
    }
    return pieces;
}

int errno_of(const std::string& name) {
    constexpr int k_errno_max = 133;
    for (int number = 1; number <= k_errno_max; ++number) {
        const char* known = strerrorname_np(number);
        if (known != nullptr && name == known) return number;
    }
    give_up("unknown error " + name);
}

Wanted parse(std::string_view text) {
    Wanted wanted;
    const auto parts = split(text, ':');
    wanted.calls = split(parts[0], ',');
    bool has_effect = false;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const auto at = parts[i].find('=');
        const std::string key = parts[i].substr(0, at), value = at == std::string::npos ? "" : parts[i].substr(at + 1);
        if (key == "signal" && value == "KILL") {
            has_effect = true;
        } else if (key == "error") {
            has_effect = true;
            wanted.error = errno_of(value);
        } else if (key == "when") {
            char* end = nullptr;
            wanted.first = std::strtol(value.c_str(), &end, 10);
            const std::string_view rest = end;
            if (wanted.first < 1 || (!rest.empty() && rest != "+")) give_up("bad when=" + value);
            wanted.last = rest.empty() ? wanted.first : -1;
        } else {
            give_up("cannot do " + parts[i]);
        }
    }
    if (!has_effect) give_up("nothing to do: signal=KILL or error=ERRNO");
    return wanted;
}

void load_filter(const std::vector<std::string>& calls) {
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    need(filter != nullptr, "seccomp_init");
    for (const auto& call : calls) {
        const int number = seccomp_syscall_resolve_name(call.c_str());
        if (number == __NR_SCMP_ERROR) give_up("unknown system call " + call);
        if (const int failed = seccomp_rule_add(filter, SCMP_ACT_TRACE(0), number, 0); failed != 0)
            give_up("seccomp_rule_add: " + std::string(std::strerror(-failed)));
    }
    if (const int failed = seccomp_load(filter); failed != 0)
        give_up("seccomp_load: " + std::string(std::strerror(-failed)));
    seccomp_release(filter);
}

/// The system call at which `pid` stands is not made; it returns -error.
void refuse_call(pid_t pid, int error) {
    user_regs_struct registers{};
    need(::ptrace(PTRACE_GETREGS, pid, nullptr, &registers) == 0, "PTRACE_GETREGS");
    registers.orig_rax = static_cast<unsigned long long>(-1LL);
    registers.rax = static_cast<unsigned long long>(-static_cast<long long>(error));
    need(::ptrace(PTRACE_SETREGS, pid, nullptr, &registers) == 0, "PTRACE_SETREGS");
}

/// Traces `main` and whatever it starts until nothing of that is left; says on `report` how `main` ended.
void trace(pid_t main, const Wanted& wanted, int report) {
    long count = 0;
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR) continue;
        if (pid < 0) return;
        if (!WIFSTOPPED(status)) {
            if (pid == main) {
                need(::write(report, &status, sizeof(status)) == sizeof(status), "report");
                ::close(report);
            }
            continue;
        }
        const int signal = WSTOPSIG(status);
        const int event = status >> 16;
        if (event == PTRACE_EVENT_SECCOMP && pid == main) {
            ++count;
            const bool hit = count >= wanted.first && (wanted.last < 0 || count <= wanted.last);
            if (hit && wanted.error == 0) {
                ::kill(main, SIGKILL);
            } else if (hit) {
                refuse_call(main, wanted.error);
            }
        }
        const bool is_group_stop = event == PTRACE_EVENT_STOP && signal != SIGTRAP;
        if (is_group_stop) {
            ::ptrace(PTRACE_LISTEN, pid, nullptr, nullptr);
        } else {
            ::ptrace(PTRACE_CONT, pid, nullptr,
                     event == 0 ? reinterpret_cast<void*>(static_cast<long>(signal)) : nullptr);
        }
    }
}

/// COMMAND, as soon as it is traced.
[[noreturn]] void run(char** command, const Wanted& wanted, int go) {
    char byte = 0;
    need(::read(go, &byte, 1) == 1, "waiting for the tracer");
    ::close(go);
    load_filter(wanted.calls);
    ::execvp(command[0], command);
    give_up(std::string(command[0]) + ": " + std::strerror(errno));
}

/// The process that starts COMMAND and traces it.
[[noreturn]] void start(char** command, const Wanted& wanted, int report) {
    std::array<int, 2> go{};
    need(::pipe2(go.data(), O_CLOEXEC) == 0, "pipe2");
    const pid_t main = ::fork();
    need(main >= 0, "fork");
    if (main == 0) {
        ::close(go[1]);
        run(command, wanted, go[0]);
    }
    constexpr long k_options =
        PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    need(::ptrace(PTRACE_SEIZE, main, nullptr, reinterpret_cast<void*>(k_options)) == 0, "PTRACE_SEIZE");
    need(::write(go[1], "g", 1) == 1, "go");
    // Whoever reads the output of COMMAND waits for COMMAND, not for this.
    for (const int fd : {0, 1, 2, go[0], go[1]}) ::close(fd);
    trace(main, wanted, report);
    std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) give_up("usage: inject CALLS:signal=KILL|error=ERRNO[:when=N[+]] COMMAND...");
    const Wanted wanted = parse(argv[1]);
    std::array<int, 2> report{};
    need(::pipe2(report.data(), O_CLOEXEC) == 0, "pipe2");
    const pid_t tracer = ::fork();
    need(tracer >= 0, "fork");
    if (tracer == 0) {
        ::close(report[0]);
        start(argv + 2, wanted, report[1]);
    }
    ::close(report[1]);
    int status = 0;
    if (::read(report[0], &status, sizeof(status)) != sizeof(status)) give_up("the tracer has ended");
    if (WIFSIGNALED(status)) {
        std::signal(WTERMSIG(status), SIG_DFL);
        ::raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}
