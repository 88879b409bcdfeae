// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "sys/clock.hpp"

namespace kmm::drive {

/// Time left for one step.
class Deadline {
public:
    Deadline(const sys::Clock& clock, std::chrono::milliseconds duration)
        : clock_(clock), end_(clock.monotonic() + duration) {}
    [[nodiscard]] bool passed() const { return clock_.monotonic() >= end_; }
    /// At least one second, so that a call made at the end still has a chance.
    [[nodiscard]] std::chrono::milliseconds left() const {
        return std::max(end_ - clock_.monotonic(), std::chrono::milliseconds(1000));
    }

private:
    const sys::Clock& clock_;
    std::chrono::milliseconds end_;
};

}  // namespace kmm::drive
