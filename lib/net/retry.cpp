// SPDX-License-Identifier: Apache-2.0
#include "net/retry.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::net {

namespace {

using std::chrono::milliseconds;

/// "Sun, 06 Nov 1994 08:49:37 GMT" as seconds since 1970.
std::optional<std::int64_t> parse_imf_date(std::string_view text) {
    static constexpr std::array<std::string_view, 12> k_months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT") {
        return std::nullopt;
    }
    const auto month = std::find(k_months.begin(), k_months.end(), text.substr(8, 3));
    const auto day = base::parse_number<unsigned>(text.substr(5, 2));
    const auto year = base::parse_number<unsigned>(text.substr(12, 4));
    if (month == k_months.end() || !day || !year) {
        return std::nullopt;
    }
    std::string iso = std::string(text.substr(12, 4)) + "-";
    const auto month_number = month - k_months.begin() + 1;
    iso += (month_number < 10 ? "0" : "") + std::to_string(month_number) + "-" + std::string(text.substr(5, 2)) + "T" +
           std::string(text.substr(17, 8)) + "Z";
    return base::parse_rfc3339(iso);
}

}  // namespace

std::optional<std::int64_t> parse_http_date(std::string_view text) { return parse_imf_date(base::trim(text)); }

bool is_retryable_status(int status) noexcept {
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

std::optional<milliseconds> parse_retry_after(std::string_view text, std::int64_t now_unix) {
    text = base::trim(text);
    if (!text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        return std::chrono::seconds(text.size() > 6 ? 1'000'000U : base::parse_number<unsigned>(text).value_or(0));
    }
    const auto date = parse_imf_date(text);
    if (!date) {
        return std::nullopt;
    }
    return std::chrono::seconds(std::clamp<std::int64_t>(*date - now_unix, 0, 1'000'000));
}

milliseconds retry_delay(const RetryPolicy& policy, int failures, std::optional<milliseconds> retry_after,
                         double random) {
    milliseconds wait = policy.base;
    for (int i = 1; i < failures && wait < policy.cap; ++i) {
        wait *= 2;
    }
    const double factor = 1.0 + policy.jitter * (2.0 * random - 1.0);
    wait = milliseconds(static_cast<milliseconds::rep>(static_cast<double>(wait.count()) * factor));
    return std::min(std::max(wait, retry_after.value_or(milliseconds(0))), policy.cap);
}

}  // namespace kmm::net
