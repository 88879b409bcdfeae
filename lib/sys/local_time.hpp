// SPDX-License-Identifier: Apache-2.0
// The time of day people live by.
#pragma once

#include <cstdint>
#include <string>

namespace kmm::sys {

/// Makes `zone` ("Europe/Berlin") the time zone of this process and of its children; call it before there are threads.
/// Errors: usage "bad-value" for a name the system does not know.
void use_time_zone(const std::string& zone);

/// Minutes since midnight in the process's time zone, 0 to 1439.
[[nodiscard]] int minute_of_day(std::int64_t unix_seconds);

}  // namespace kmm::sys
