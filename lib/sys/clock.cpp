// SPDX-License-Identifier: Apache-2.0
#include "sys/clock.hpp"

#include <poll.h>

#include <algorithm>
#include <ctime>

#include "sys/signals.hpp"

namespace kmm::sys {

std::int64_t LinuxClock::now_unix() const {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::chrono::milliseconds LinuxClock::monotonic() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

std::chrono::milliseconds LinuxClock::with_suspend() const {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::seconds(now.tv_sec) +
                                                                 std::chrono::nanoseconds(now.tv_nsec));
}

bool LinuxClock::sleep_for(std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (!interrupt_requested()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        if (left <= std::chrono::milliseconds::zero()) {
            return true;
        }
        // poll ignores a negative descriptor, so this also works before the handlers are installed.
        pollfd watched{interrupt_fd(), POLLIN, 0};
        constexpr std::chrono::milliseconds k_slice{60'000};
        ::poll(&watched, 1, static_cast<int>(std::min(left, k_slice).count()));
    }
    return false;
}

}  // namespace kmm::sys
