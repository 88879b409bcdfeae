// SPDX-License-Identifier: Apache-2.0
#include "sys/signals.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace kmm::sys {
namespace {

// Signal handlers can only reach static storage; these are the only such state of the toolkit.
std::atomic<int> g_signal{0};
std::atomic<int> g_event_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free);

Exit exit_of(int signal) noexcept {
    return signal == SIGINT ? Exit::interrupted : signal == SIGHUP ? Exit::hangup : Exit::terminated;
}

extern "C" void on_signal(int signal) {
    const int saved = errno;
    if (g_signal.load() != 0) {
        ::_exit(static_cast<int>(exit_of(signal)));
    }
    request_interrupt(signal);
    errno = saved;
}

/// What std::terminate did before.
std::terminate_handler g_terminate_before = nullptr;

/// Memory can be too short for the exception that says so, or run out before anyone could catch it.
[[noreturn]] void on_terminate() {
    bool lacks_memory = false;
    if (const std::exception_ptr active = std::current_exception()) {
        try {
            std::rethrow_exception(active);
        } catch (const std::bad_alloc&) {
            lacks_memory = true;
        } catch (...) {
            lacks_memory = false;
        }
    } else {
        constexpr std::size_t enough = 1U << 20U;
        void* const piece = std::malloc(enough);
        lacks_memory = piece == nullptr;
        std::free(piece);
    }
    if (lacks_memory) {
        constexpr std::string_view text = "error: out of memory\n  code:    out-of-memory\n";
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
        ::_exit(static_cast<int>(Exit::bug));
    }
    if (g_terminate_before != nullptr) {
        g_terminate_before();
    }
    std::abort();
}

void handle(int signal) {
    struct sigaction old_action {};
    ::sigaction(signal, nullptr, &old_action);
    if (signal != SIGTERM && old_action.sa_handler == SIG_IGN) {
        return;
    }
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

}  // namespace

void open_standard_descriptors() {
    for (int fd = 0; fd <= 2; ++fd) {
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            // The lowest free number is `fd` itself, because those below are open by now. Read-only: what is written
            // there fails as before.
            [[maybe_unused]] const int opened = ::open("/dev/null", O_RDONLY);
        }
    }
}

void require_open_files() {
    constexpr rlim_t k_files_min = 64;
    constexpr rlim_t k_files_good = 256;  // a tree is removed with two for each level
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= k_files_good) {
        return;
    }
    const rlim_t found = limit.rlim_cur;
    limit.rlim_cur = std::min(k_files_good, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        limit.rlim_cur = found;
    }
    if (limit.rlim_cur < k_files_min) {
        throw Error(Exit::io, "io",
                    "expected a limit of at least " + std::to_string(k_files_min) + " open files, found " +
                        std::to_string(limit.rlim_cur))
            .hint("raise it: ulimit -n 1024 in a shell, LimitNOFILE=1024 in a unit of systemd");
    }
}

void install_signal_handlers() {
    open_standard_descriptors();
    if (const std::terminate_handler before = std::set_terminate(on_terminate); before != on_terminate) {
        g_terminate_before = before;
    }
    if (g_event_fd.load() < 0) {
        g_event_fd.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    }
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, nullptr);
    handle(SIGINT);
    handle(SIGTERM);
    handle(SIGHUP);
}

bool interrupt_requested() noexcept {
    return g_signal.load() != 0;
}

int interrupt_signal() noexcept {
    return g_signal.load();
}

Exit interrupt_exit() noexcept {
    return exit_of(g_signal.load());
}

void request_interrupt(int signal) noexcept {
    g_signal.store(signal);
    const int fd = g_event_fd.load();
    if (fd >= 0) {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
    }
}

void clear_interrupt() noexcept {
    g_signal.store(0);
    const int fd = g_event_fd.load();
    if (fd >= 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = ::read(fd, &count, sizeof count);
    }
}

int interrupt_fd() noexcept {
    return g_event_fd.load();
}

}  // namespace kmm::sys
