// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <ctime>

#include "base/error.hpp"
#include "sys/local_time.hpp"

using namespace kmm;

TEST_SUITE("sys::unit") {

TEST_CASE("the time of day in a named zone") {
    sys::use_time_zone("UTC");
    CHECK(sys::minute_of_day(1'790'000'000) == 14 * 60 + 13);
    CHECK(sys::minute_of_day(1'790'000'000 + 86'400) == 14 * 60 + 13);
    struct stat info {};
    if (::stat("/usr/share/zoneinfo/Europe/Berlin", &info) == 0) {
        sys::use_time_zone("Europe/Berlin");
        CHECK(sys::minute_of_day(1'790'000'000) == 16 * 60 + 13);  // summer
        CHECK(sys::minute_of_day(1'800'000'000) == 9 * 60);        // winter
    }
    for (const auto* zone : {"", "Nowhere/Atall", "../../etc/passwd", "/etc/passwd", "Europe"}) {
        CAPTURE(zone);
        CHECK_THROWS_AS(sys::use_time_zone(zone), Error);
    }
    ::unsetenv("TZ");
    ::tzset();
}
}
