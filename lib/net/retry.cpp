// SPDX-License-Identifier: Apache-2.0
#include "net/retry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::net {

namespace {

using std::chrono::milliseconds;

std::optional<std::int64_t> seconds_of(std::string_view year, std::string_view month, std::string_view day,
                                       std::string_view time) {
    static constexpr std::array<std::string_view, 12> k_months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto* const found = std::find(k_months.begin(), k_months.end(), month);
    const auto day_number = base::parse_number<unsigned>(day.substr(day.starts_with(' ') ? 1 : 0));
    if (found == k_months.end() || !day_number) {
        return std::nullopt;
    }
    return base::parse_rfc3339(
        fmt::format("{}-{:02}-{:02}T{}Z", year, found - k_months.begin() + 1, *day_number, time));
}

}  // namespace

std::optional<std::int64_t> parse_http_date(std::string_view text) {
    text = base::trim(text);
    if (text.size() == 24) {  // asctime()
        return text[3] == ' ' && text[7] == ' ' && text[10] == ' ' && text[19] == ' '
                   ? seconds_of(text.substr(20), text.substr(4, 3), text.substr(8, 2), text.substr(11, 8))
                   : std::nullopt;
    }
    const std::size_t comma = text.find(", ");
    if (comma == std::string_view::npos || !text.ends_with(" GMT")) {
        return std::nullopt;
    }
    const std::string_view rest = text.substr(comma + 2);
    if (comma == 3 && rest.size() == 24 && rest[2] == ' ' && rest[6] == ' ' && rest[11] == ' ') {
        return seconds_of(rest.substr(7, 4), rest.substr(3, 3), rest.substr(0, 2), rest.substr(12, 8));
    }
    if (comma > 3 && rest.size() == 22 && rest[2] == '-' && rest[6] == '-' && rest[9] == ' ') {  // RFC 850
        const std::string century = rest[7] >= '7' ? "19" : "20";
        return seconds_of(century + std::string(rest.substr(7, 2)), rest.substr(3, 3), rest.substr(0, 2),
                          rest.substr(10, 8));
    }
    return std::nullopt;
}

bool is_retryable_status(int status) noexcept {
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

std::optional<milliseconds> parse_retry_after(std::string_view text, std::int64_t now_unix) {
    text = base::trim(text);
    if (!text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        return std::chrono::seconds(text.size() > 6 ? 1'000'000U : base::parse_number<unsigned>(text).value_or(0));
    }
    const auto date = parse_http_date(text);
    if (!date) {
        return std::nullopt;
    }
    return std::chrono::seconds(std::clamp<std::int64_t>(*date - now_unix, 0, 1'000'000));
}

std::optional<milliseconds> retry_after(const Response& response, std::int64_t now_unix) {
    const auto text = response.header("retry-after");
    if (!text) {
        return std::nullopt;
    }
    const auto date = response.header("date");
    const auto server_now = date ? parse_http_date(*date) : std::nullopt;
    return parse_retry_after(*text, server_now.value_or(now_unix));
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
