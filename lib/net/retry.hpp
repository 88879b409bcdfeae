// SPDX-License-Identifier: Apache-2.0
// When to try again, and after how long. Pure: the caller brings the clock and the random number.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/http.hpp"

namespace kmm::net {

struct RetryPolicy {
    int attempts = 5;                        ///< tries in all, at least 1
    std::chrono::milliseconds base{500};     ///< wait after the first failure; doubled after each further one
    std::chrono::milliseconds cap{60'000};   ///< no wait is longer, whatever the server asks for
    double jitter = 0.25;                    ///< the wait is changed by up to this fraction
};

/// 408, 429, 500, 502, 503 and 504.
[[nodiscard]] bool is_retryable_status(int status) noexcept;

/// The wait that a Retry-After header asks for: whole seconds or a date (RFC 9110 10.2.3), see parse_http_date(). A
/// date in the past is 0; nullopt for anything else.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text, std::int64_t now_unix);

/// The Retry-After of a response. A date is taken against the server's own clock (its Date header) if it tells it, not
/// ours.
[[nodiscard]] std::optional<std::chrono::milliseconds> retry_after(const Response& response, std::int64_t now_unix);

/// A date as in a Date header, in seconds since 1970; nullopt for anything else. Three forms (RFC 9110 5.6.7), the
/// latter two obsolete: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT" (70 to 99 are of the last
/// century), "Sun Nov  6 08:49:37 1994".
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view text);

/// The wait before the next try after `failures` (from 1) failures: the server's Retry-After if it is longer than our
/// own exponential wait, never above the cap. `random` is from [0, 1).
[[nodiscard]] std::chrono::milliseconds retry_delay(const RetryPolicy& policy, int failures,
                                                    std::optional<std::chrono::milliseconds> retry_after,
                                                    double random);

}  // namespace kmm::net
