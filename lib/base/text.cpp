// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/invisible.hpp"

namespace kmm::base {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> pieces;
    std::size_t start = 0;
    for (;;) {
        const std::size_t end = text.find(separator, start);
        if (end == std::string_view::npos) {
            pieces.push_back(text.substr(start));
            return pieces;
        }
        pieces.push_back(text.substr(start, end - start));
        start = end + 1;
    }
}

std::string join(std::span<const std::string> pieces, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (i > 0) text.append(separator);
        text.append(pieces[i]);
    }
    return text;
}

std::string_view trim(std::string_view text) noexcept {
    constexpr std::string_view k_blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(k_blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(k_blank) - first + 1);
}

std::string to_lower(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
    constexpr std::string_view k_digits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const std::uint8_t byte : bytes) {
        text.push_back(k_digits[byte >> 4U]);
        text.push_back(k_digits[byte & 15U]);
    }
    return text;
}

namespace {

int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

constexpr std::string_view k_base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Length of the valid UTF-8 sequence at `at`, 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(at);
    if (lead < 0x80) return 1;
    std::size_t length = 0;
    std::uint32_t point = 0;
    if ((lead & 0xE0U) == 0xC0U) {
        length = 2;
        point = lead & 0x1FU;
    } else if ((lead & 0xF0U) == 0xE0U) {
        length = 3;
        point = lead & 0x0FU;
    } else if ((lead & 0xF8U) == 0xF0U) {
        length = 4;
        point = lead & 0x07U;
    } else {
        return 0;
    }
    if (at + length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0U) != 0x80U) return 0;
        point = (point << 6U) | (byte(at + i) & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> k_min = {0, 0, 0x80, 0x800, 0x10000};
    if (point < k_min[length] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return 0;
    return length;
}

}  // namespace

std::optional<std::vector<std::uint8_t>> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    std::vector<std::uint8_t> bytes;
    bytes.reserve(text.size() / 2);
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const int high = hex_value(text[i]);
        const int low = hex_value(text[i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        bytes.push_back(static_cast<std::uint8_t>(high * 16 + low));
    }
    return bytes;
}

std::string to_base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            group = group << 8U;
            if (i + k < bytes.size()) group |= static_cast<unsigned char>(bytes[i + k]);
        }
        for (std::size_t k = 0; k < 4; ++k) {
            const bool pad = i + k > bytes.size();
            text.push_back(pad ? '=' : k_base64[(group >> (18U - 6U * static_cast<unsigned>(k))) & 63U]);
        }
    }
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    std::string bytes;
    std::uint32_t group = 0;
    unsigned bits = 0;
    std::size_t symbols = 0;
    std::size_t pads = 0;
    for (const char c : text) {
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
        if (c == '=') {
            if (++pads > 2) return std::nullopt;
            continue;
        }
        const std::size_t value = k_base64.find(c);
        if (value == std::string_view::npos || pads > 0) return std::nullopt;
        ++symbols;
        group = (group << 6U) | static_cast<std::uint32_t>(value);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes.push_back(static_cast<char>((group >> bits) & 0xFFU));
        }
    }
    if (symbols % 4 == 1) return std::nullopt;
    if (pads > 0 && (symbols + pads) % 4 != 0) return std::nullopt;
    return bytes;
}

std::string escape(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const std::size_t length = utf8_length(text, i);
        if (byte == '\n') {
            safe.append("\\n");
        } else if (byte == '\t') {
            safe.append("\\t");
        } else if (byte == '\\') {
            safe.append("\\\\");
        } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
            safe.append(fmt::format("\\x{:02x}", byte));
        } else if (length > 1 && is_invisible(code_point(text.substr(i, length)))) {
            for (const char c : text.substr(i, length))
                safe.append(fmt::format("\\x{:02x}", static_cast<unsigned char>(c)));
        } else {
            safe.append(text.substr(i, length));
        }
        i += length == 0 ? 1 : length;
    }
    return safe;
}

bool is_utf8(std::string_view text) noexcept {
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_length(text, i);
        if (length == 0) return false;
        i += length;
    }
    return true;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    const std::size_t columns = b.size() + 1;
    std::vector<std::size_t> before(columns);
    std::vector<std::size_t> previous(columns);
    std::vector<std::size_t> current(columns);
    for (std::size_t j = 0; j < columns; ++j) previous[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (std::size_t j = 1; j < columns; ++j) {
            const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                current[j] = std::min(current[j], before[j - 2] + 1);
            }
        }
        std::swap(before, previous);
        std::swap(previous, current);
    }
    return previous[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
    // One letter is near to nothing but itself in other case.
    const std::size_t limit = word.size() < 2 ? 0 : std::min<std::size_t>(3, std::max<std::size_t>(1, word.size() / 3));
    std::size_t best = limit + 1;
    const std::string* found = nullptr;
    for (const auto& candidate : candidates) {
        const std::size_t distance = edit_distance(to_lower(word), to_lower(candidate));
        if (distance < best) {
            best = distance;
            found = &candidate;
        }
    }
    if (found == nullptr) return std::nullopt;
    return *found;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
    if (text.empty()) return std::nullopt;
    double total = 0;
    while (!text.empty()) {
        const std::size_t digits = text.find_first_not_of("0123456789.");
        if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
        double number = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + digits, number);
        if (error != std::errc{} || stop != text.data() + digits) return std::nullopt;
        text.remove_prefix(digits);
        double unit = 0;
        if (text.starts_with("ms")) {
            unit = 1;
            text.remove_prefix(2);
        } else {
            switch (text.front()) {
                case 's': unit = 1e3; break;
                case 'm': unit = 60e3; break;
                case 'h': unit = 3600e3; break;
                default: return std::nullopt;
            }
            text.remove_prefix(1);
        }
        total += number * unit;
    }
    if (!(total <= 365.0 * 24 * 3600e3)) return std::nullopt;
    return std::chrono::milliseconds(std::llround(total));
}

std::string format_duration(std::chrono::milliseconds duration) {
    const auto ms = duration.count();
    if (ms < 0) return "0ms";
    if (ms < 1000) return fmt::format("{}ms", ms);
    if (ms < 60'000) return fmt::format("{}.{}s", ms / 1000, ms % 1000 / 100);
    const auto seconds = ms / 1000;
    if (seconds < 3600) return fmt::format("{}m{}s", seconds / 60, seconds % 60);
    return fmt::format("{}h{}m{}s", seconds / 3600, seconds % 3600 / 60, seconds % 60);
}

std::string format_rfc3339(std::int64_t unix_seconds) {
    const std::chrono::sys_seconds moment{std::chrono::seconds(unix_seconds)};
    const auto day = std::chrono::floor<std::chrono::days>(moment);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(moment - day);
    return fmt::format(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()), time.hours().count(), time.minutes().count(), time.seconds().count()
    );
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
    if (text.size() != 20) return std::nullopt;
    const auto number = [&](std::size_t at, std::size_t length) -> int {
        int value = 0;
        for (std::size_t i = at; i < at + length; ++i) {
            if (text[i] < '0' || text[i] > '9') return -1;
            value = value * 10 + (text[i] - '0');
        }
        return value;
    };
    const int year = number(0, 4);
    const int month = number(5, 2);
    const int day = number(8, 2);
    const int hour = number(11, 2);
    const int minute = number(14, 2);
    const int second = number(17, 2);
    const bool marks =
        text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' && text[16] == ':' && text[19] == 'Z';
    if (!marks || year < 0 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
        return std::nullopt;
    if (month < 1 || day < 1) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return std::nullopt;
    const auto seconds = std::chrono::sys_days(date).time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(seconds).count() + hour * 3600 + minute * 60 + second;
}

std::string format_bytes(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double size = static_cast<double>(bytes);
    std::size_t unit = 0;
    constexpr std::array k_units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    while (size >= 1024 && unit + 1 < k_units.size()) {
        size /= 1024;
        ++unit;
    }
    return fmt::format("{:.1f} {}", size, k_units[unit]);
}

}  // namespace kmm::base
