// SPDX-License-Identifier: Apache-2.0
#include "sys/local_time.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "sys/file_ops.hpp"
#include "sys/zone_file.hpp"

namespace kmm::sys {

MinuteOfDay minute_of_day_in(const std::string& zone) {
    constexpr std::int64_t k_day_seconds = 86'400;
    if (zone.empty()) {
        return [](std::int64_t unix_seconds) {
            const auto time = static_cast<std::time_t>(unix_seconds);
            std::tm parts{};
            ::localtime_r(&time, &parts);
            return parts.tm_hour * 60 + parts.tm_min;
        };
    }
    const char* given = std::getenv("TZDIR");
    const std::string directory = given != nullptr && *given != 0 ? given : "/usr/share/zoneinfo";
    const bool is_name = zone.front() != '/' && zone.find("..") == std::string::npos &&
                         std::all_of(zone.begin(), zone.end(), [](char c) {
                             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                    c == '/' || c == '_' || c == '-' || c == '+';
                         });
    const auto path = directory + "/" + zone;
    struct stat info {};
    const bool is_there = is_name && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
    constexpr std::size_t k_file_max = 1U << 20U;
    const auto file = is_there        ? ZoneFile::parse(read_file(path, k_file_max))
                      : zone == "UTC" ? std::optional(ZoneFile())
                                      : std::nullopt;
    if (!file)
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--tz is \"{}\", expected a time zone as Europe/Berlin", zone))
            .hint(fmt::format("they are the files below {}, of the package tzdata", directory));
    return [file = *file](std::int64_t unix_seconds) {
        const auto in_day = (unix_seconds + file.offset_at(unix_seconds)) % k_day_seconds;
        return static_cast<int>((in_day < 0 ? in_day + k_day_seconds : in_day) / 60);
    };
}

}  // namespace kmm::sys
