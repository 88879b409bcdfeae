// SPDX-License-Identifier: Apache-2.0
// Time zone files, as tzfile(5) and RFC 8536 have them. Internal to lib/sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::sys {

/// The rule of the footer for all times after the last transition, as in the variable TZ (POSIX, "Other Environment
/// Variables").
struct ZoneRule {
    /// A day of the year, and the seconds after its midnight.
    struct Change {
        enum class Kind {
            month_week_day,
            julian,
            zero_based
        } kind = Kind::month_week_day;  ///< Mm.w.d, Jn (no 29 February), n
        int month = 0, week = 0, day = 0;
        std::int64_t seconds = 7200;
    };
    std::int64_t standard = 0, summer = 0;  ///< seconds east of UTC
    bool has_summer = false;
    Change start, end;  ///< of summer time

    /// nullopt for a text that is not such a rule.
    [[nodiscard]] static std::optional<ZoneRule> parse(std::string_view text);
    [[nodiscard]] std::int64_t offset_at(std::int64_t unix_seconds) const;
};

struct ZoneFile {
    struct Transition {
        std::int64_t time = 0, offset = 0;
    };
    std::int64_t first_offset = 0;  ///< before the first transition
    std::vector<Transition> transitions;
    std::optional<ZoneRule> rule;

    /// nullopt for bytes that are not a time zone file.
    [[nodiscard]] static std::optional<ZoneFile> parse(std::string_view bytes);
    /// Seconds east of UTC.
    [[nodiscard]] std::int64_t offset_at(std::int64_t unix_seconds) const;
};

}  // namespace kmm::sys
