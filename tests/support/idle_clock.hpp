// SPDX-License-Identifier: Apache-2.0
// A clock for tests of what waits.
#pragma once

#include <chrono>
#include <cstdint>

#include "sys/clock.hpp"

namespace kmm::drive::test {

/// Time goes on by sleeping, which takes none.
class IdleClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'790'000'000 + time_.count() / 1000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return time_; }
    bool sleep_for(std::chrono::milliseconds duration) override {
        time_ += duration;
        return true;
    }

private:
    std::chrono::milliseconds time_{0};
};

}  // namespace kmm::drive::test
