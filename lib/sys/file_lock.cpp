// SPDX-License-Identifier: Apache-2.0
#include "sys/file_lock.hpp"

#include <poll.h>
#include <sys/file.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/input_deadline.hpp"
#include "sys/signals.hpp"

namespace kmm::sys {

bool wait_for_lock(int fd, int operation, const std::string& path) {
    constexpr int k_pause_ms = 50;
    while (::flock(fd, operation | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return false;
        if (interrupt_requested())
            throw Error(interrupt_exit(), "interrupted", "interrupted while waiting for the lock of " + path);
        if (const auto limit = passed_input_limit())
            throw Error(Exit::timeout, "timeout",
                        "the lock of " + path + " was not free within " + base::format_duration(*limit))
                .hint("see with lslocks or lsof who holds it, or give --timeout more");
        pollfd interrupt{interrupt_fd(), POLLIN, 0};
        static_cast<void>(::poll(&interrupt, 1, k_pause_ms));
    }
    return true;
}

}  // namespace kmm::sys
