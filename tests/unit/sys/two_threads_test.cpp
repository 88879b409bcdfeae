// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <stdexcept>

#include "sys/two_threads.hpp"

using namespace kmm;

TEST_SUITE("sys::two_threads") {
    TEST_CASE("work is done by two threads at the same time") {
        std::latch both(2);
        sys::run_in_two_threads([&] { both.arrive_and_wait(); });
        CHECK(both.try_wait());
    }

    TEST_CASE("what either thread throws is thrown when both have ended") {
        std::atomic<int> calls = 0, ended = 0;
        const auto work = [&] {
            if (calls++ == 1) throw std::runtime_error("second");
            ++ended;
        };
        CHECK_THROWS_WITH(sys::run_in_two_threads(work), "second");
        CHECK(ended == 1);
    }

    TEST_CASE("the second thread has room for calls as deep as those of the first") {
        std::atomic<std::size_t> least = std::size_t{1} << 40U;
        std::latch both(2);
        sys::run_in_two_threads([&] {
            pthread_attr_t attributes;
            std::size_t size = 0;
            if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
                static_cast<void>(::pthread_attr_getstacksize(&attributes, &size));
                ::pthread_attr_destroy(&attributes);
            }
            if (::gettid() != ::getpid()) least = size;
            both.arrive_and_wait();
        });
        CHECK(least >= std::size_t{8} << 20U);
        CHECK(least < std::size_t{1} << 40U);
    }

    TEST_CASE("the processors that may be used are those of the affinity") {
        cpu_set_t all, one;
        REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
        CHECK(sys::usable_processors() == static_cast<std::size_t>(CPU_COUNT(&all)));
        CPU_ZERO(&one);
        for (std::size_t i = 0; CPU_COUNT(&one) == 0; ++i) {
            if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
        }
        REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
        CHECK(sys::usable_processors() == 1);
        CHECK(!sys::run_together());
        CHECK(::sched_setaffinity(0, sizeof all, &all) == 0);
    }
}
