// SPDX-License-Identifier: Apache-2.0
// The time of day people live by.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kmm::sys {

/// A clock face: minutes since midnight, 0 to 1439, at a time in seconds since 1970.
using MinuteOfDay = std::function<int(std::int64_t unix_seconds)>;

/// The clock face of `zone` ("Europe/Berlin"), read from the system's zone file; that of this process for "". The
/// environment stays as it is, so that other threads may read it. Thread safe, and so is the result. Errors: usage
/// "bad-value" for a name the system does not know or a file that is not one of a time zone.
[[nodiscard]] MinuteOfDay minute_of_day_in(const std::string& zone);

}  // namespace kmm::sys
