// SPDX-License-Identifier: Apache-2.0
// The seam through which all waiting and all time stamps go.
#pragma once

#include <chrono>
#include <cstdint>

namespace kmm::sys {

class Clock {
public:
    virtual ~Clock() = default;
    /// Wall clock, seconds since 1970 UTC. Information only: never used for ordering.
    [[nodiscard]] virtual std::int64_t now_unix() const = 0;
    /// Monotonic time since an arbitrary start.
    [[nodiscard]] virtual std::chrono::milliseconds monotonic() const = 0;
    /// As monotonic, but the time in which this machine was suspended counts.
    [[nodiscard]] virtual std::chrono::milliseconds with_suspend() const { return monotonic(); }
    /// Sleeps; returns early (false) when an interrupt was requested (see signals.hpp).
    virtual bool sleep_for(std::chrono::milliseconds duration) = 0;
};

/// The system's clocks.
class LinuxClock final : public Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override;
    [[nodiscard]] std::chrono::milliseconds monotonic() const override;
    [[nodiscard]] std::chrono::milliseconds with_suspend() const override;
    bool sleep_for(std::chrono::milliseconds duration) override;
};

}  // namespace kmm::sys
