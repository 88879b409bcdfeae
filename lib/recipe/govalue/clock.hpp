// SPDX-License-Identifier: Apache-2.0
// Given times, never the present one, as Go's package time writes and reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

/// time.Time.Format with a layout like "2006-01-02".
[[nodiscard]] std::string format_time(const Time& moment, std::string_view layout);
/// time.Parse; nullopt if the text does not fit the layout.
[[nodiscard]] std::optional<Time> parse_time(std::string_view layout, std::string_view text);
/// What `%v` prints.
[[nodiscard]] std::string time_text(const Time& moment);
/// RFC 3339 with the fraction that is there, as JSON has it.
[[nodiscard]] std::string rfc3339(const Time& moment);
/// time.ParseDuration in nanoseconds; nullopt for what is none.
[[nodiscard]] std::optional<std::int64_t> parse_duration(std::string_view text);
/// time.Duration.String().
[[nodiscard]] std::string duration_text(std::int64_t nanos);

}  // namespace kmm::recipe::tmpl
