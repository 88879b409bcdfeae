// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/shared_work.hpp"

using namespace kmm;

namespace {

void run_twice(const std::function<void()>& work) {
    std::thread other(work);
    work();
    other.join();
}

}  // namespace

TEST_SUITE("base::shared_work") {
    TEST_CASE("each number is worked on once, by one thread or two") {
        for (const auto& run : {base::RunTogether(), base::RunTogether(run_twice)}) {
            std::vector<int> made(1000);
            base::share_work(made.size(), run, [&](std::size_t i) { made[i] += static_cast<int>(i) + 1; });
            for (std::size_t i = 0; i < made.size(); ++i) { REQUIRE(made[i] == static_cast<int>(i) + 1); }
        }
    }

    TEST_CASE("both threads work at the same time") {
        std::latch both(2);
        base::share_work(2, run_twice, [&](std::size_t) { both.arrive_and_wait(); });
        CHECK(both.try_wait());
    }

    TEST_CASE("one piece, and none, need no thread") {
        int calls = 0;
        const base::RunTogether never = [](const std::function<void()>&) { FAIL("a thread for one piece"); };
        base::share_work(1, never, [&](std::size_t) { ++calls; });
        base::share_work(0, never, [&](std::size_t) { ++calls; });
        CHECK(calls == 1);
    }

    TEST_CASE("what the lowest number throws is thrown, and what follows is not begun") {
        const auto none = base::RunTogether();
        for (const auto& run : {none, base::RunTogether(run_twice)}) {
            // The second of both fails first.
            std::latch later(run ? 1 : 0);
            std::atomic<int> calls = 0;
            CHECK_THROWS_WITH(base::share_work(1000, run,
                                               [&](std::size_t i) {
                                                   ++calls;
                                                   if (i == 0) later.wait();
                                                   if (i == 1) later.count_down();
                                                   if (i < 2) throw std::runtime_error(std::to_string(i));
                                               }),
                              "0");
            CHECK(calls <= 2);
        }
    }
}
