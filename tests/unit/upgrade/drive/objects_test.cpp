// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive/objects.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"

namespace kmm::drive {
namespace {

/// Time that passes when somebody sleeps.
class WaitClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'790'000'000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return time_; }
    bool sleep_for(std::chrono::milliseconds duration) override {
        time_ += duration;
        return true;
    }

private:
    std::chrono::milliseconds time_{0};
};

TEST_CASE("what is waited for is said after ten seconds, then every thirty, with the time that is left") {
    WaitClock clock;
    const Deadline deadline(clock, std::chrono::seconds(100));
    std::vector<std::string> said;
    const Say say = [&](const std::string& text) { said.push_back(text); };
    const auto never = [] { return false; };
    SUBCASE("nothing that ends soon") {
        await_clear(clock, deadline, never, "", spoken(clock, deadline, say, [&] {
            return clock.monotonic() < std::chrono::seconds(8) ? std::string("not ready") : std::string();
        }));
        CHECK(said.empty());
    }
    SUBCASE("until the end") {
        CHECK_THROWS_AS(await_clear(clock, deadline, never, "look", spoken(clock, deadline, say, [] {
            return std::string("not ready");
        })), Error);
        REQUIRE(said.size() == 4);
        CHECK(said.front().starts_with("waits: not ready; 1m2"));
        CHECK(said.front().ends_with("s left"));
    }
}

}  // namespace
}  // namespace kmm::drive
