// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "base/error.hpp"
#include "sys/local_time.hpp"
#include "sys/zone_file.hpp"

using namespace kmm;

namespace {

/// What the C library makes of the same zone.
int by_library(std::int64_t unix_seconds) {
    const auto time = static_cast<std::time_t>(unix_seconds);
    std::tm parts{};
    ::localtime_r(&time, &parts);
    return parts.tm_hour * 60 + parts.tm_min;
}

}  // namespace

TEST_SUITE("sys::unit") {

TEST_CASE("the time of day in a named zone, without a word in the environment") {
    const auto utc = sys::minute_of_day_in("UTC");
    CHECK(utc(1'790'000'000) == 14 * 60 + 13);
    CHECK(utc(1'790'000'000 + 86'400) == 14 * 60 + 13);
    CHECK(utc(-60) == 23 * 60 + 59);
    struct stat info {};
    if (::stat("/usr/share/zoneinfo/Europe/Berlin", &info) == 0) {
        const auto berlin = sys::minute_of_day_in("Europe/Berlin");
        CHECK(berlin(1'790'000'000) == 16 * 60 + 13);  // summer
        CHECK(berlin(1'800'000'000) == 9 * 60);        // winter
    }
    CHECK(std::getenv("TZ") == nullptr);
    for (const auto* zone : {"Nowhere/Atall", "../../etc/passwd", "/etc/passwd", "Europe", "zone.tab", "leapseconds"}) {
        CAPTURE(zone);
        CHECK_THROWS_AS(static_cast<void>(sys::minute_of_day_in(zone)), Error);
    }
}

TEST_CASE("zone files say what the C library says, in every part of the world and far from today") {
    int compared = 0;
    for (const std::string zone :
         {"Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "America/Nuuk", "Asia/Kolkata",
          "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Apia", "Africa/Casablanca", "Asia/Gaza",
          "Antarctica/Troll", "Etc/GMT+5"}) {
        struct stat info {};
        if (::stat(("/usr/share/zoneinfo/" + zone).c_str(), &info) != 0) continue;
        CAPTURE(zone);
        ::setenv("TZ", (":" + zone).c_str(), 1);
        ::tzset();
        const auto ours = sys::minute_of_day_in(zone);
        int wrong = 0;
        for (std::int64_t time = -2'200'000'000; time < 4'200'000'000; time += 3 * 86'400 + 1'801) {
            if (ours(time) != by_library(time)) ++wrong;
            ++compared;
        }
        CHECK(wrong == 0);
    }
    ::unsetenv("TZ");
    ::tzset();
    MESSAGE(compared << " times");
}

TEST_CASE("the rule of a zone: every form, and texts that are none") {
    const auto offset = [](const std::string& text, std::int64_t time) {
        const auto rule = sys::ZoneRule::parse(text);
        REQUIRE(rule);
        return rule->offset_at(time);
    };
    constexpr std::int64_t k_january = 1'800'000'000, k_july = 1'815'000'000;
    CHECK(offset("UTC0", k_july) == 0);
    CHECK(offset("<+0330>-3:30", k_july) == 12'600);
    CHECK(offset("CET-1CEST,M3.5.0,M10.5.0/3", k_january) == 3600);
    CHECK(offset("CET-1CEST,M3.5.0,M10.5.0/3", k_july) == 7200);
    CHECK(offset("IST-1GMT0,M10.5.0,M3.5.0/1", k_january) == 0);
    CHECK(offset("IST-1GMT0,M10.5.0,M3.5.0/1", k_july) == 3600);
    CHECK(offset("AEST-10AEDT,J274/2,89/-1", k_january) == 39'600);
    for (const char* text :
         {"", "U", "UTC", "<+03", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
          "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,J0,J2", "CET-1CEST,M3.5.0,M10.5.0x", "CET-1:99", "CET-200"}) {
        CAPTURE(text);
        CHECK_FALSE(sys::ZoneRule::parse(text));
    }
    for (const std::string& bytes : {std::string("TZif"), std::string("TZif2") + std::string(60, '\0'),
                                     std::string("TZif2") + std::string(39, '\xff')})
        CHECK_FALSE(sys::ZoneFile::parse(bytes));
}
}
