// SPDX-License-Identifier: Apache-2.0
#include "sys/local_time.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

#include "base/error.hpp"

namespace kmm::sys {

void use_time_zone(const std::string& zone) {
    const char* given = std::getenv("TZDIR");
    const std::string directory = given != nullptr && *given != 0 ? given : "/usr/share/zoneinfo";
    const bool is_name = !zone.empty() && zone.front() != '/' && zone.find("..") == std::string::npos &&
                         std::all_of(zone.begin(), zone.end(), [](char c) {
                             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '_' ||
                                    c == '-' || c == '+';
                         });
    struct stat info {};
    const bool is_known = zone == "UTC" || (is_name && ::stat((directory + "/" + zone).c_str(), &info) == 0 && S_ISREG(info.st_mode));
    if (!is_known)
        throw Error(Exit::usage, "bad-value", fmt::format("--tz is \"{}\", expected a time zone as Europe/Berlin", zone))
            .hint(fmt::format("they are the files below {}, of the package tzdata", directory));
    ::setenv("TZ", (":" + zone).c_str(), 1);
    ::tzset();
}

int minute_of_day(std::int64_t unix_seconds) {
    const auto time = static_cast<std::time_t>(unix_seconds);
    std::tm parts{};
    ::localtime_r(&time, &parts);
    return parts.tm_hour * 60 + parts.tm_min;
}

}  // namespace kmm::sys
