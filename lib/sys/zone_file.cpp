// SPDX-License-Identifier: Apache-2.0
#include "sys/zone_file.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/number.hpp"

namespace kmm::sys {
namespace {

using Change = ZoneRule::Change;

constexpr std::int64_t k_day = 86'400;

/// Reads a text from its beginning on.
class ZoneText {
public:
    explicit ZoneText(std::string_view text) : text_(text) {}
    [[nodiscard]] bool at_end() const noexcept { return text_.empty(); }
    bool take(char wanted) {
        if (text_.empty() || text_.front() != wanted) return false;
        text_.remove_prefix(1);
        return true;
    }
    /// CET or <+03>.
    bool name() {
        const bool quoted = take('<');
        std::size_t length = 0;
        while (length < text_.size() && (quoted ? text_[length] != '>' : is_letter(text_[length]))) ++length;
        if (length < 3) return false;
        text_.remove_prefix(length);
        return !quoted || take('>');
    }
    std::optional<int> number(int most) {
        std::size_t length = 0;
        while (length < text_.size() && text_[length] >= '0' && text_[length] <= '9') ++length;
        const auto value = base::parse_number<int>(text_.substr(0, length));
        text_.remove_prefix(length);
        return value && *value <= most ? value : std::nullopt;
    }
    /// [+-]hh[:mm[:ss]] in seconds.
    std::optional<std::int64_t> duration() {
        constexpr int k_hours = 167;
        const bool negative = take('-');
        if (!negative) static_cast<void>(take('+'));
        const auto hours = number(k_hours);
        if (!hours) return std::nullopt;
        std::int64_t seconds = *hours * std::int64_t{3600};
        for (const int unit : {60, 1}) {
            if (!take(':')) break;
            const auto part = number(59);
            if (!part) return std::nullopt;
            seconds += *part * unit;
        }
        return negative ? -seconds : seconds;
    }
    std::optional<Change> change() {
        Change made;
        bool good = true;
        const auto next = [&](int least, int most) {
            const auto value = number(most);
            good = good && value && *value >= least;
            return value.value_or(0);
        };
        if (take('M')) {
            made.month = next(1, 12);
            good = take('.') && good;
            made.week = next(1, 5);
            good = take('.') && good;
            made.day = next(0, 6);
        } else {
            made.kind = take('J') ? Change::Kind::julian : Change::Kind::zero_based;
            made.day = next(made.kind == Change::Kind::julian ? 1 : 0, 365);
        }
        if (take('/')) {
            const auto time = duration();
            good = good && time;
            made.seconds = time.value_or(0);
        }
        return good ? std::optional(made) : std::nullopt;
    }

private:
    static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
    std::string_view text_;
};

/// Seconds since 1970 of the change in `year`, on a clock that shows UTC.
std::int64_t time_of(const Change& change, std::chrono::year year) {
    using namespace std::chrono;
    sys_days day;
    if (change.kind == Change::Kind::month_week_day) {
        const auto month = year / std::chrono::month(static_cast<unsigned>(change.month));
        const weekday wanted(static_cast<unsigned>(change.day));
        day = change.week == 5 ? sys_days(month / wanted[last])
                               : sys_days(month / wanted[static_cast<unsigned>(change.week)]);
    } else {
        const bool skips = change.kind == Change::Kind::julian;
        const bool after_february = skips && year.is_leap() && change.day >= 60;
        day = sys_days(year / January / 1) + days(change.day - (skips ? 1 : 0) + (after_february ? 1 : 0));
    }
    return day.time_since_epoch().count() * k_day + change.seconds;
}

std::int64_t big_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
    return bytes.size() == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(value))
                             : static_cast<std::int64_t>(value);
}

/// The counts of a header; `time_size` is 4 in the first block and 8 in the second.
struct ZoneCounts {
    std::size_t utc = 0, standard = 0, leaps = 0, times = 0, types = 0, letters = 0;
    [[nodiscard]] std::size_t size(std::size_t time_size) const {
        return times * (time_size + 1) + types * 6 + letters + leaps * (time_size + 4) + standard + utc;
    }
};

constexpr std::size_t k_header = 44;
constexpr std::size_t k_count_max = 100'000;

std::optional<ZoneCounts> counts_of(std::string_view bytes) {
    if (bytes.size() < k_header || !bytes.starts_with("TZif")) return std::nullopt;
    ZoneCounts counts;
    std::size_t at = 20;
    for (auto* count : {&counts.utc, &counts.standard, &counts.leaps, &counts.times, &counts.types, &counts.letters}) {
        const auto value = big_endian(bytes.substr(at, 4));
        if (value < 0 || static_cast<std::size_t>(value) > k_count_max) return std::nullopt;
        *count = static_cast<std::size_t>(value);
        at += 4;
    }
    return counts.types == 0 ? std::nullopt : std::optional(counts);
}

}  // namespace

std::optional<ZoneRule> ZoneRule::parse(std::string_view text) {
    ZoneText rest(text);
    ZoneRule rule;
    if (!rest.name()) return std::nullopt;
    const auto west = rest.duration();
    if (!west) return std::nullopt;
    rule.standard = -*west;
    if (rest.at_end()) return rule;
    if (!rest.name()) return std::nullopt;
    rule.has_summer = true;
    rule.summer = rule.standard + 3600;
    if (!rest.take(',')) {
        const auto summer_west = rest.duration();
        if (!summer_west || !rest.take(',')) return std::nullopt;
        rule.summer = -*summer_west;
    }
    const auto start = rest.change();
    if (!start || !rest.take(',')) return std::nullopt;
    const auto end = rest.change();
    if (!end || !rest.at_end()) return std::nullopt;
    rule.start = *start;
    rule.end = *end;
    return rule;
}

std::int64_t ZoneRule::offset_at(std::int64_t unix_seconds) const {
    if (!has_summer) return standard;
    using namespace std::chrono;
    const auto year = year_month_day(floor<days>(sys_seconds(seconds(unix_seconds + standard)))).year();
    const auto begin = time_of(start, year) - standard;
    const auto over = time_of(end, year) - summer;
    const bool is_summer =
        begin < over ? unix_seconds >= begin && unix_seconds < over : unix_seconds >= begin || unix_seconds < over;
    return is_summer ? summer : standard;
}

std::optional<ZoneFile> ZoneFile::parse(std::string_view bytes) {
    auto counts = counts_of(bytes);
    if (!counts) return std::nullopt;
    const bool is_long = bytes[4] >= '2';
    std::size_t time_size = 4;
    if (is_long) {
        const auto skipped = k_header + counts->size(time_size);
        if (skipped > bytes.size()) return std::nullopt;
        bytes.remove_prefix(skipped);
        counts = counts_of(bytes);
        if (!counts) return std::nullopt;
        time_size = 8;
    }
    const auto end = k_header + counts->size(time_size);
    if (end > bytes.size()) return std::nullopt;
    const auto indices = k_header + counts->times * time_size;
    const auto types = indices + counts->times;
    const auto offset_of = [&](std::size_t type) { return big_endian(bytes.substr(types + type * 6, 4)); };
    ZoneFile zone;
    zone.first_offset = offset_of(0);
    for (std::size_t i = 0; i < counts->times; ++i) {
        const auto type = static_cast<std::size_t>(static_cast<unsigned char>(bytes[indices + i]));
        if (type >= counts->types) return std::nullopt;
        zone.transitions.push_back({big_endian(bytes.substr(k_header + i * time_size, time_size)), offset_of(type)});
    }
    auto footer = is_long ? bytes.substr(end) : std::string_view();
    if (footer.size() >= 2 && footer.front() == '\n') {
        footer = footer.substr(1, footer.find('\n', 1) - 1);
        if (!footer.empty()) {
            zone.rule = ZoneRule::parse(footer);
            if (!zone.rule) return std::nullopt;
        }
    }
    return zone;
}

std::int64_t ZoneFile::offset_at(std::int64_t unix_seconds) const {
    const auto next =
        std::upper_bound(transitions.begin(), transitions.end(), unix_seconds,
                         [](std::int64_t time, const Transition& transition) { return time < transition.time; });
    if (next == transitions.end() && rule) return rule->offset_at(unix_seconds);
    return next == transitions.begin() ? first_offset : std::prev(next)->offset;
}

}  // namespace kmm::sys
