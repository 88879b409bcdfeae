// SPDX-License-Identifier: Apache-2.0
#include "sys/process.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/fd.hpp"
#include "sys/program.hpp"

extern char** environ;

namespace kmm::sys {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int k_ask_again_ms = 1000;
constexpr std::chrono::milliseconds k_group_poll{20};
/// A grandchild may keep the pipes open (an ssh master); we wait this long for the rest of the child's own output.
constexpr std::chrono::milliseconds k_drain_grace{200};

/// SIGPIPE blocked in this thread while it feeds a child that may be gone; one that came meanwhile is taken away.
class SigpipeBlock {
public:
    SigpipeBlock() {
        ::sigemptyset(&set_);
        ::sigaddset(&set_, SIGPIPE);
        sigset_t pending{};
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &set_, &old_);
    }
    SigpipeBlock(const SigpipeBlock&) = delete;
    SigpipeBlock& operator=(const SigpipeBlock&) = delete;
    ~SigpipeBlock() {
        const timespec now{0, 0};
        if (!was_pending_) {
            ::sigtimedwait(&set_, nullptr, &now);
        }
        ::pthread_sigmask(SIG_SETMASK, &old_, nullptr);
    }

private:
    sigset_t set_{};
    sigset_t old_{};
    bool was_pending_ = false;
};

struct Pipe {
    Fd read_end;
    Fd write_end;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot create a pipe");
    }
    Pipe pipe{Fd(ends[0]), Fd(ends[1])};
    // The child moves its ends to 0, 1 and 2 with dup2, which must never overwrite an end still to be moved.
    for (Fd* end : {&pipe.read_end, &pipe.write_end}) {
        if (end->get() <= 2) {
            const int moved = ::fcntl(end->get(), F_DUPFD_CLOEXEC, 3);
            if (moved < 0) {
                const int saved = errno;
                throw from_errno(saved, "cannot create a pipe");
            }
            end->reset(moved);
        }
    }
    return pipe;
}

/// Why `program`, which is relative to `directory` ("" for ours), could not be started; `number` < 0: not be entered.
Error start_error(const std::string& program, int number, const std::string& directory = {}) {
    if (number < 0) { return from_errno(-number, "cannot enter " + directory); }
    const bool is_below = !program.starts_with('/') && !directory.empty() && ::access(directory.c_str(), F_OK) == 0;
    const std::string path = is_below ? directory + "/" + program : program;
    if (number == ENOENT && ::access(path.c_str(), F_OK) == 0) {
        return Error(Exit::not_found, "command-not-found",
                     "command " + program + " cannot be run: it is there, and the interpreter that it names is not")
            .hint("correct its first line, or install that interpreter");
    }
    if (number == ENOENT) {
        return Error(Exit::not_found, "command-not-found", "command " + program + " not found");
    }
    Error error = from_errno(number, "cannot start " + program);
    if (number == ENOEXEC) {
        error.hint("a script needs a first line as #!/bin/sh; no shell is called for it");
    }
    return error;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& extra) {
    std::vector<std::string> variables;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (std::none_of(extra.begin(), extra.end(), [&](const auto& pair) { return pair.first == name; })) {
            variables.emplace_back(text);
        }
    }
    for (const auto& [name, value] : extra) {
        variables.push_back(name + "=" + value);
    }
    return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

/// Everything the child needs, made before vfork: after it, only async-signal-safe calls are allowed.
struct ChildPlan {
    const char* program = nullptr;
    char** argv = nullptr;
    char** envp = nullptr;
    int in = -1, out = -1, err = -1, report = -1;
    bool new_session = true;
    pid_t parent = 0;
    const int* inherited = nullptr;
    std::size_t inherited_count = 0;
    const char* directory = nullptr;
};

[[noreturn]] void run_child(const ChildPlan& plan) {
    const auto give_up = [&](int sign = 1) {
        const int saved = sign * errno;
        [[maybe_unused]] const ssize_t written = ::write(plan.report, &saved, sizeof saved);
        ::_exit(127);
    };
    if (plan.new_session) {
        ::setsid();
    }
    // A killed parent must not leave a child behind that goes on acting.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != plan.parent) {
        ::_exit(127);
    }
    if (::dup2(plan.in, 0) < 0 || ::dup2(plan.out, 1) < 0 || ::dup2(plan.err, 2) < 0) {
        give_up();
    }
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    for (std::size_t i = 0; i < plan.inherited_count; ++i) {
        ::fcntl(plan.inherited[i], F_SETFD, 0);
    }
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    // Our handlers must not run here, in memory that is still the parent's.
    for (int signal = 1; signal < NSIG; ++signal) {
        struct sigaction now {};
        if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN) {
            ::sigaction(signal, &action, nullptr);
        }
    }
    ::sigaction(SIGPIPE, &action, nullptr);
    ::sigaction(SIGXFSZ, &action, nullptr);
    sigset_t none{};
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (plan.directory != nullptr && ::chdir(plan.directory) != 0 && errno != ENOENT && errno != ENOTDIR) {
        give_up(-1);  // it is not the program
    }
    ::execve(plan.program, plan.argv, plan.envp);
    give_up();
    ::_exit(127);
}

/// As vfork: the parent's memory is not copied, whose page tables alone cost milliseconds in a run of many nodes. This
/// thread goes on once the child is another program, or gone. -1 with errno.
pid_t start_child(const ChildPlan& plan) {
    sigset_t all{};
    sigset_t old{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &old);
    const pid_t pid = ::vfork();
    if (pid == 0) {
        run_child(plan);
    }
    const int saved = errno;
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
    errno = saved;
    return pid;
}

void set_nonblocking(int fd) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/// Hands complete lines to a callback, without their line ends.
class LineFeed {
public:
    explicit LineFeed(const std::function<void(std::string_view)>& on_line) : on_line_(on_line) {}
    void add(std::string_view bytes) {
        if (!on_line_) {
            return;
        }
        constexpr std::size_t k_line_max = 64U << 10U;
        rest_.append(bytes);
        std::size_t start = 0;
        for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', start)) {
            on_line_(std::string_view(rest_).substr(start, end - start));
            start = end + 1;
        }
        rest_.erase(0, start);
        if (rest_.size() > k_line_max) {
            finish();
        }
    }
    void finish() {
        if (on_line_ && !rest_.empty()) {
            on_line_(rest_);
            rest_.clear();
        }
    }

private:
    const std::function<void(std::string_view)>& on_line_;
    std::string rest_;
};

/// The running child and its pipes. Kills and reaps it if something throws.
class Child {
public:
    explicit Child(const ProcessSpec& spec) : spec_(spec), lines_(spec.on_stderr_line) { start(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (pid_ > 0) {
            signal_all(SIGKILL);
            reap();
        }
    }

    ProcessResult run() {
        const SteadyClock::time_point never = SteadyClock::time_point::max();
        SteadyClock::time_point next = spec_.timeout ? SteadyClock::now() + *spec_.timeout : never;
        while (pid_ > 0 || out_ || err_) {
            poll_once(next);
            if (pid_ > 0 && exited()) {
                reap();
                in_.reset();
                next = SteadyClock::now() + k_drain_grace;
            } else if (SteadyClock::now() >= next) {
                if (pid_ <= 0) {
                    break;
                }
                const bool is_ending = result_.timed_out || result_.cancelled;
                signal_all(is_ending ? SIGKILL : SIGTERM);
                next = is_ending ? never : SteadyClock::now() + spec_.grace;
                result_.timed_out = !result_.cancelled;
            } else if (pid_ > 0 && !result_.timed_out && !result_.cancelled && spec_.cancelled && spec_.cancelled()) {
                result_.cancelled = true;
                signal_all(SIGTERM);
                next = SteadyClock::now() + spec_.grace;
            }
        }
        lines_.finish();
        if (result_.timed_out || result_.cancelled) {
            end_group();
        }
        return std::move(result_);
    }

private:
    /// What the child has started gets SIGTERM with it, its time to end, and then SIGKILL as well.
    void end_group() const {
        const auto is_left = [&] { return spec_.new_session && ::kill(-group_, 0) == 0; };
        for (const SteadyClock::time_point end = SteadyClock::now() + spec_.grace; is_left();
             std::this_thread::sleep_for(k_group_poll)) {
            if (SteadyClock::now() >= end) {
                ::kill(-group_, SIGKILL);
                return;
            }
        }
    }

    void start() {
        if (spec_.argv.empty()) {
            throw bug("run_process without a command");
        }
        const std::string program = find_in_path(spec_.argv.front());
        std::vector<std::string> argv = spec_.argv;
        std::vector<std::string> environment = environment_with(spec_.extra_env);
        std::vector<char*> argv_pointers = pointers_to(argv);
        std::vector<char*> env_pointers = pointers_to(environment);
        Pipe in = make_pipe();
        Pipe out = make_pipe();
        Pipe err = make_pipe();
        Pipe report = make_pipe();
        ChildPlan plan{program.c_str(),       argv_pointers.data(),    env_pointers.data(),
                       in.read_end.get(),     out.write_end.get(),     err.write_end.get(),
                       report.write_end.get(), spec_.new_session,      ::getpid(),
                       spec_.inherited.data(), spec_.inherited.size(),
                       spec_.directory.empty() ? nullptr : spec_.directory.c_str()};
        if (spec_.inherit_streams) {
            plan.in = 0;
            plan.out = 1;
            plan.err = 2;
        }
        const pid_t pid = start_child(plan);
        if (pid < 0) {
            const int saved = errno;
            throw from_errno(saved, "cannot start " + program);
        }
        pid_ = pid;
        group_ = pid;
        report.write_end.reset();
        int child_errno = 0;
        ssize_t got = 0;
        do {
            got = ::read(report.read_end.get(), &child_errno, sizeof child_errno);
        } while (got < 0 && errno == EINTR);
        if (got == static_cast<ssize_t>(sizeof child_errno)) {
            reap();
            throw start_error(program, child_errno, spec_.directory);
        }
        pid_fd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        if (!pid_fd_) {
            const int saved = errno;
            signal_all(SIGKILL);
            reap();
            throw from_errno(saved, "cannot watch " + program);
        }
        if (spec_.inherit_streams) {
            return;
        }
        in_ = std::move(in.write_end);
        out_ = std::move(out.read_end);
        err_ = std::move(err.read_end);
        for (const Fd* end : {&in_, &out_, &err_}) {
            set_nonblocking(end->get());
        }
        if (spec_.stdin_text.empty()) {
            in_.reset();
        }
    }

    void poll_once(SteadyClock::time_point deadline) {
        std::array<pollfd, 4> watched{{{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0},
                                       {pid_ > 0 ? pid_fd_.get() : -1, POLLIN, 0}}};
        int wait_ms = -1;
        if (deadline != SteadyClock::time_point::max()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
            wait_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
        }
        if (spec_.cancelled && (wait_ms < 0 || wait_ms > k_ask_again_ms)) {
            wait_ms = k_ask_again_ms;
        }
        if (::poll(watched.data(), watched.size(), wait_ms) < 0) {
            const int saved = errno;
            if (saved == EINTR) {
                return;
            }
            throw from_errno(saved, "cannot wait for " + spec_.argv.front());
        }
        if (watched[0].revents != 0) {
            feed();
        }
        if (watched[1].revents != 0) {
            drain(out_, result_.out, nullptr);
        }
        if (watched[2].revents != 0) {
            drain(err_, result_.err, &lines_);
        }
    }

    void feed() {
        const std::string_view left = std::string_view(spec_.stdin_text).substr(fed_);
        const ssize_t written = ::write(in_.get(), left.data(), left.size());
        if (written < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                in_.reset();  // the child does not want the rest
            }
            return;
        }
        fed_ += static_cast<std::size_t>(written);
        if (fed_ == spec_.stdin_text.size()) {
            in_.reset();
        }
    }

    void drain(Fd& fd, std::string& kept, LineFeed* lines) const {
        std::array<char, 16384> buffer{};
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (got <= 0) {
            fd.reset();
            return;
        }
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
        if (spec_.keep_end) {
            kept.append(bytes);
            if (kept.size() > spec_.output_max) { kept.erase(0, kept.size() - spec_.output_max); }
        } else {
            kept.append(bytes.substr(0, spec_.output_max - std::min(spec_.output_max, kept.size())));
        }
        if (lines != nullptr) {
            lines->add(bytes);
        }
    }

    [[nodiscard]] bool exited() const {
        pollfd watched{pid_fd_.get(), POLLIN, 0};
        return ::poll(&watched, 1, 0) > 0;
    }

    void reap() {
        int status = 0;
        pid_t got = 0;
        do {
            got = ::waitpid(pid_, &status, 0);
        } while (got < 0 && errno == EINTR);
        if (got == pid_ && WIFSIGNALED(status)) {
            result_.signal = WTERMSIG(status);
        } else if (got == pid_) {
            result_.exit_code = WEXITSTATUS(status);
        }
        pid_ = -1;
    }

    void signal_all(int signal) const {
        if (!spec_.new_session || ::kill(-pid_, signal) != 0) {
            ::kill(pid_, signal);
        }
    }

    const ProcessSpec& spec_;
    LineFeed lines_;
    ProcessResult result_;
    pid_t pid_ = -1;
    pid_t group_ = -1;  ///< stays when the child itself is gone
    Fd pid_fd_, in_, out_, err_;
    std::size_t fed_ = 0;
};

}  // namespace

ProcessResult run_process(const ProcessSpec& spec) {
    const SigpipeBlock block;
    return Child(spec).run();
}

Error replace_process(const std::vector<std::string>& argv) {
    const std::string program = find_in_path(argv.front());
    std::vector<std::string> words = argv;
    std::vector<char*> pointers = pointers_to(words);
    (void)::execv(program.c_str(), pointers.data());
    const int saved = errno;
    return start_error(program, saved);
}

}  // namespace kmm::sys
