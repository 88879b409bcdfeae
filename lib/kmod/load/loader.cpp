// SPDX-License-Identifier: Apache-2.0
#include "kmod/load/loader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_errno.hpp"
#include "kmod/ko/files.hpp"

namespace kmm::kmod {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds k_grace{2000};  // for a killed helper to disappear
constexpr unsigned k_ignore_modversions = 1;  // flags of finit_module(2)
constexpr unsigned k_ignore_vermagic = 2;
constexpr int k_child_file = 0;        // where the helper has the module file
constexpr int k_child_pipe = 1;        // where the helper writes the errno

// Between fork and _exit only async-signal-safe calls are made.
int load_in_child(const char* parameters, unsigned flags) {
    if (::syscall(SYS_finit_module, k_child_file, parameters, flags) == 0) return 0;
    if (errno != ENOSYS || flags != 0) return errno;
    struct stat status {};
    if (::fstat(k_child_file, &status) != 0) return errno;
    const auto size = static_cast<std::size_t>(status.st_size);
    void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, k_child_file, 0);
    if (bytes == MAP_FAILED) return errno;  // NOLINT: the macro casts
    return ::syscall(SYS_init_module, bytes, size, parameters) == 0 ? 0 : errno;
}

int unload_in_child(const char* name, unsigned flags) {
    return ::syscall(SYS_delete_module, name, static_cast<unsigned>(O_NONBLOCK) | flags) == 0 ? 0 : errno;
}

/// True if the pipe became readable or was closed within `timeout`.
bool wait_readable(int fd, milliseconds timeout) {
    const auto end = steady_clock::now() + timeout;
    for (;;) {
        const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
        if (left.count() < 0) return false;
        pollfd poll_fd{fd, POLLIN, 0};
        const int ready =
            ::poll(&poll_fd, 1, static_cast<int>(std::min<milliseconds::rep>(left.count() + 1, 1'000'000)));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return true;
    }
}

sys::Fd above_standard(int fd) {
    sys::Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
    if (!copy) throw LastErrno().error("cannot prepare the module loader");
    return copy;
}

LoaderAnswer in_helper(int file, const char* text, unsigned flags, int (*call)(const char*, unsigned),
                       milliseconds timeout) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw LastErrno().error("cannot prepare the module loader");
    const sys::Fd reading(ends[0]);
    sys::Fd raw_writing(ends[1]);
    sys::Fd writing = above_standard(raw_writing.get());
    raw_writing = sys::Fd();
    const sys::Fd module = file >= 0 ? above_standard(file) : sys::Fd();

    LoaderAnswer answer;
    const pid_t pid = ::fork();
    if (pid < 0) throw LastErrno().error("cannot start the module loader");
    if (pid == 0) {
        // No descriptor of the parent may stay open in a process that might hang for ever.
        (void)::setsid();
        if (module) {
            (void)::dup2(module.get(), k_child_file);
        } else {
            (void)::close(k_child_file);
        }
        (void)::dup2(writing.get(), k_child_pipe);
        (void)::close(2);
        (void)::syscall(SYS_close_range, 3U, ~0U, 0U);
        const int error = call(text, flags);
        (void)!::write(k_child_pipe, &error, sizeof error);
        ::_exit(0);
    }
    answer.pid = pid;
    writing = sys::Fd();
    if (!wait_readable(reading.get(), timeout)) {
        answer.hung = true;
        answer.wchan = read_text(fmt::format("/proc/{}/wchan", pid)).value_or("");
        (void)::kill(pid, SIGKILL);
        if (wait_readable(reading.get(), k_grace)) {
            answer.gone = true;
            (void)::waitpid(pid, nullptr, 0);
        } else {
            (void)::waitpid(pid, nullptr, WNOHANG);
        }
        return answer;
    }
    int error = 0;
    const bool answered = ::read(reading.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error);
    (void)::waitpid(pid, nullptr, 0);
    answer.lost = !answered;
    answer.error =
        answered ? error : EINTR;  // a helper killed from outside leaves no answer; the caller looks at sysfs
    return answer;
}

}  // namespace

LoaderAnswer LinuxModuleLoader::load(int fd, const std::string& parameters, const Force& force, milliseconds timeout) {
    const unsigned flags = (force.modversions ? k_ignore_modversions : 0U) | (force.vermagic ? k_ignore_vermagic : 0U);
    return in_helper(fd, parameters.c_str(), flags, load_in_child, timeout);
}

LoaderAnswer LinuxModuleLoader::unload(const std::string& name, const Force& force, milliseconds timeout) {
    return in_helper(-1, name.c_str(), force.removal ? static_cast<unsigned>(O_TRUNC) : 0U, unload_in_child, timeout);
}

}  // namespace kmm::kmod
