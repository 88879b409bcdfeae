// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/objects.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/idle_clock.hpp"

namespace kmm::drive {
namespace {

TEST_CASE("what is waited for is said after ten seconds, then every thirty, with the time that is left") {
    test::IdleClock clock;
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
