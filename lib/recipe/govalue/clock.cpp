// SPDX-License-Identifier: Apache-2.0
#include "recipe/govalue/clock.hpp"

#include <array>
#include <chrono>

#include <fmt/format.h>

#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::array<std::string_view, 12> k_months{"January",   "February", "March",    "April",
                                                    "May",       "June",     "July",     "August",
                                                    "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> k_days{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                 "Thursday", "Friday", "Saturday"};
/// Longer ones first: the first that fits is taken.
constexpr std::array<std::string_view, 34> k_chunks{
    "January", "Jan",       "Monday", "Mon",    "MST", "2006",    "01",        "02",    "03",     "04", "05", "06",
    "002",     "15",        "__2",    "_2006",  "_2",  "1",       "2",         "3",     "4",      "5",  "PM", "pm",
    "-070000", "-07:00:00", "-0700",  "-07:00", "-07", "Z070000", "Z07:00:00", "Z0700", "Z07:00", "Z07"};

bool lower_follows(std::string_view text, std::size_t at) {
    return at < text.size() && text[at] >= 'a' && text[at] <= 'z';
}

/// The chunk of a layout at `at`: its name, or "" if it is plain text; ".000" and ".999" as written.
std::string_view chunk_at(std::string_view layout, std::size_t at) {
    const std::string_view rest = layout.substr(at);
    if ((rest[0] == '.' || rest[0] == ',') && rest.size() > 1 && (rest[1] == '0' || rest[1] == '9')) {
        std::size_t end = 1;
        while (end < rest.size() && rest[end] == rest[1]) { ++end; }
        if (end >= rest.size() || !is_digit(static_cast<unsigned char>(rest[end]))) { return rest.substr(0, end); }
    }
    if (rest.starts_with("002")) { return rest.substr(0, 3); }
    for (const auto chunk : k_chunks) {
        if (!rest.starts_with(chunk)) { continue; }
        if ((chunk == "Jan" || chunk == "Mon") && lower_follows(layout, at + 3)) { continue; }
        if (chunk == "_2006") { return rest.substr(0, 1).substr(1); }
        return rest.substr(0, chunk.size());
    }
    return {};
}

struct Civil {
    int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, weekday = 4, yearday = 1;
};

Civil civil_of(const Time& moment) {
    constexpr std::int64_t k_seconds_max = 900'000'000'000;  // about the year 30000
    if (moment.seconds > k_seconds_max || moment.seconds < -k_seconds_max) { throw Fault{"the time is out of range"}; }
    const std::int64_t seconds = moment.seconds + moment.offset;
    const std::int64_t days = seconds / 86400 - (seconds % 86400 < 0 ? 1 : 0);
    const std::int64_t rest = seconds - days * 86400;
    const std::chrono::sys_days day{std::chrono::days{static_cast<int>(days)}};
    const std::chrono::year_month_day date{day};
    Civil c;
    c.year = static_cast<int>(date.year());
    c.month = static_cast<int>(static_cast<unsigned>(date.month()));
    c.day = static_cast<int>(static_cast<unsigned>(date.day()));
    c.hour = static_cast<int>(rest / 3600);
    c.minute = static_cast<int>(rest / 60 % 60);
    c.second = static_cast<int>(rest % 60);
    c.weekday = static_cast<int>(std::chrono::weekday{day}.c_encoding());
    c.yearday = static_cast<int>((day - std::chrono::sys_days{date.year() / 1 / 1}).count()) + 1;
    return c;
}

std::string zone_offset(std::int32_t offset, std::string_view form) {
    if (form[0] == 'Z' && offset == 0) { return "Z"; }
    const int minutes = (offset < 0 ? -offset : offset) / 60;
    std::string out = fmt::format("{}{:02}", offset < 0 ? '-' : '+', minutes / 60);
    if (form.size() > 3) {
        out += fmt::format("{}{:02}", form.find(':') != std::string_view::npos ? ":" : "", minutes % 60);
    }
    return out;
}

std::string fraction(std::int64_t nanos, std::string_view form) {
    std::string digits = fmt::format("{:09}", nanos).substr(0, std::min<std::size_t>(form.size() - 1, 9));
    if (form[1] == '9') {
        while (!digits.empty() && digits.back() == '0') { digits.pop_back(); }
        if (digits.empty()) { return ""; }
    }
    return form[0] + digits;
}

std::string formatted_chunk(const Time& moment, const Civil& c, std::string_view chunk) {
    const auto month = k_months.at(static_cast<std::size_t>(c.month - 1));
    const auto day = k_days.at(static_cast<std::size_t>(c.weekday));
    const int hour = c.hour % 12 == 0 ? 12 : c.hour % 12;
    if (chunk[0] == '.' || chunk[0] == ',') { return fraction(moment.nanos, chunk); }
    if (chunk == "January") { return std::string(month); }
    if (chunk == "Jan") { return std::string(month.substr(0, 3)); }
    if (chunk == "Monday") { return std::string(day); }
    if (chunk == "Mon") { return std::string(day.substr(0, 3)); }
    if (chunk == "MST") { return moment.zone.empty() ? zone_offset(moment.offset, "-0700") : moment.zone; }
    if (chunk == "2006") { return fmt::format("{:04}", c.year); }
    if (chunk == "06") { return fmt::format("{:02}", c.year % 100); }
    if (chunk == "01") { return fmt::format("{:02}", c.month); }
    if (chunk == "1") { return std::to_string(c.month); }
    if (chunk == "02") { return fmt::format("{:02}", c.day); }
    if (chunk == "_2") { return fmt::format("{:2}", c.day); }
    if (chunk == "2") { return std::to_string(c.day); }
    if (chunk == "002") { return fmt::format("{:03}", c.yearday); }
    if (chunk == "__2") { return fmt::format("{:3}", c.yearday); }
    if (chunk == "15") { return fmt::format("{:02}", c.hour); }
    if (chunk == "03") { return fmt::format("{:02}", hour); }
    if (chunk == "3") { return std::to_string(hour); }
    if (chunk == "04") { return fmt::format("{:02}", c.minute); }
    if (chunk == "4") { return std::to_string(c.minute); }
    if (chunk == "05") { return fmt::format("{:02}", c.second); }
    if (chunk == "5") { return std::to_string(c.second); }
    if (chunk == "PM") { return c.hour >= 12 ? "PM" : "AM"; }
    if (chunk == "pm") { return c.hour >= 12 ? "pm" : "am"; }
    return zone_offset(moment.offset, chunk);
}

/// Reads a text by a layout.
class TimeReader {
public:
    explicit TimeReader(std::string_view text) : text_(text) {}

    std::optional<Time> run(std::string_view layout) {
        for (std::size_t at = 0; at < layout.size();) {
            const std::string_view chunk = chunk_at(layout, at);
            if (chunk.empty()) {
                if (text_.empty() || text_[0] != layout[at]) { return std::nullopt; }
                text_.remove_prefix(1);
                ++at;
                continue;
            }
            at += chunk.size();
            if (!take(chunk)) { return std::nullopt; }
            const bool fraction_next =
                at < layout.size() && (chunk_at(layout, at).starts_with('.') || chunk_at(layout, at).starts_with(','));
            if ((chunk == "05" || chunk == "5") && !fraction_next && !loose_fraction()) { return std::nullopt; }
        }
        return text_.empty() ? finish() : std::nullopt;
    }

private:
    std::string_view text_;
    Civil c_{.year = 0};
    std::int64_t nanos_ = 0;
    std::int32_t offset_ = 0;
    std::string zone_ = "UTC";
    bool afternoon_ = false, morning_ = false;

    bool number(int& value, std::size_t least, std::size_t most) {
        std::size_t size = 0;
        value = 0;
        while (size < most && size < text_.size() && is_digit(static_cast<unsigned char>(text_[size]))) {
            value = value * 10 + (text_[size++] - '0');
        }
        text_.remove_prefix(size);
        return size >= least;
    }

    template <std::size_t N>
    bool name(const std::array<std::string_view, N>& names, bool brief, int& value) {
        for (std::size_t i = 0; i < N; ++i) {
            const std::string_view wanted = brief ? names[i].substr(0, 3) : names[i];
            if (text_.size() < wanted.size()) { continue; }
            bool same = true;
            for (std::size_t k = 0; k < wanted.size(); ++k) {
                same = same && to_lower(static_cast<unsigned char>(text_[k])) ==
                                   to_lower(static_cast<unsigned char>(wanted[k]));
            }
            if (same) {
                text_.remove_prefix(wanted.size());
                value = static_cast<int>(i);
                return true;
            }
        }
        return false;
    }

    bool take_fraction(std::size_t most) {
        std::size_t size = 0;
        std::int64_t value = 0, scale = 1'000'000'000;
        while (size < most && size + 1 < text_.size() && is_digit(static_cast<unsigned char>(text_[size + 1]))) {
            if (scale > 1) {
                value = value * 10 + (text_[size + 1] - '0');
                scale /= 10;
            }
            ++size;
        }
        text_.remove_prefix(size + 1);
        nanos_ = value * scale;
        return size > 0;
    }

    /// Seconds may have a fraction that the layout does not name.
    bool loose_fraction() {
        if (text_.size() < 2 || (text_[0] != '.' && text_[0] != ',') ||
            !is_digit(static_cast<unsigned char>(text_[1]))) {
            return true;
        }
        return take_fraction(text_.size());
    }

    bool take_offset(std::string_view form) {
        if (form[0] == 'Z' && text_.starts_with('Z')) {
            text_.remove_prefix(1);
            return true;
        }
        if (text_.empty() || (text_[0] != '+' && text_[0] != '-')) { return false; }
        const bool negative = text_[0] == '-';
        text_.remove_prefix(1);
        int hours = 0, minutes = 0;
        if (!number(hours, 2, 2)) { return false; }
        if (form.size() > 3) {
            if (form.find(':') != std::string_view::npos) {
                if (!text_.starts_with(':')) { return false; }
                text_.remove_prefix(1);
            }
            if (!number(minutes, 2, 2)) { return false; }
        }
        if (hours > 24 || minutes > 59) { return false; }
        offset_ = (hours * 3600 + minutes * 60) * (negative ? -1 : 1);
        zone_ = offset_ == 0 ? "UTC" : "";
        return true;
    }

    bool take(std::string_view chunk) {
        int ignored = 0;
        if (chunk[0] == '.' || chunk[0] == ',') {
            if (text_.empty() || (text_[0] != '.' && text_[0] != ',')) { return chunk[1] == '9'; }
            return take_fraction(chunk[1] == '0' ? chunk.size() - 1 : text_.size());
        }
        if (chunk == "January" || chunk == "Jan") {
            if (!name(k_months, chunk == "Jan", c_.month)) { return false; }
            ++c_.month;
            return true;
        }
        if (chunk == "Monday" || chunk == "Mon") { return name(k_days, chunk == "Mon", ignored); }
        if (chunk == "MST") {
            if (text_.size() < 3) { return false; }
            zone_ = text_.substr(0, 3);
            text_.remove_prefix(3);
            return true;
        }
        if (chunk == "2006") { return number(c_.year, 4, 4); }
        if (chunk == "06") {
            const bool good = number(c_.year, 2, 2);
            c_.year += c_.year >= 69 ? 1900 : 2000;
            return good;
        }
        if (chunk == "01") { return number(c_.month, 2, 2); }
        if (chunk == "1") { return number(c_.month, 1, 2); }
        if (chunk == "_2" || chunk == "2" || chunk == "02") {
            if (chunk == "_2" && text_.starts_with(' ')) { text_.remove_prefix(1); }
            return number(c_.day, chunk == "02" ? 2 : 1, 2);
        }
        if (chunk == "15") { return number(c_.hour, 2, 2) && c_.hour < 24; }
        if (chunk == "03" || chunk == "3") { return number(c_.hour, chunk == "03" ? 2 : 1, 2) && c_.hour <= 12; }
        if (chunk == "04" || chunk == "4") { return number(c_.minute, chunk == "04" ? 2 : 1, 2) && c_.minute < 60; }
        if (chunk == "05" || chunk == "5") { return number(c_.second, chunk == "05" ? 2 : 1, 2) && c_.second < 60; }
        if (chunk == "PM" || chunk == "pm") {
            const std::string_view half = text_.substr(0, 2);
            afternoon_ = half == (chunk == "PM" ? "PM" : "pm");
            morning_ = half == (chunk == "PM" ? "AM" : "am");
            if (!afternoon_ && !morning_) { return false; }
            text_.remove_prefix(2);
            return true;
        }
        if (chunk == "002" || chunk == "__2") { return false; }
        return take_offset(chunk);
    }

    std::optional<Time> finish() {
        if (afternoon_ && c_.hour < 12) { c_.hour += 12; }
        if (morning_ && c_.hour == 12) { c_.hour = 0; }
        const std::chrono::year_month_day date{std::chrono::year{c_.year},
                                               std::chrono::month{static_cast<unsigned>(c_.month)},
                                               std::chrono::day{static_cast<unsigned>(c_.day)}};
        if (c_.month < 1 || c_.month > 12 || !date.ok()) { return std::nullopt; }
        const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
        Time moment;
        moment.seconds = days * 86400 + c_.hour * 3600 + c_.minute * 60 + c_.second - offset_;
        moment.nanos = nanos_;
        moment.offset = offset_;
        moment.zone = zone_;
        return moment;
    }
};

}  // namespace

std::string format_time(const Time& moment, std::string_view layout) {
    const Civil c = civil_of(moment);
    std::string out;
    for (std::size_t at = 0; at < layout.size();) {
        const std::string_view chunk = chunk_at(layout, at);
        if (chunk.empty()) {
            out += layout[at++];
            continue;
        }
        out += formatted_chunk(moment, c, chunk);
        at += chunk.size();
    }
    return out;
}

std::optional<Time> parse_time(std::string_view layout, std::string_view text) { return TimeReader(text).run(layout); }

std::string time_text(const Time& moment) { return format_time(moment, "2006-01-02 15:04:05.999999999 -0700 MST"); }

std::string rfc3339(const Time& moment) { return format_time(moment, "2006-01-02T15:04:05.999999999Z07:00"); }

std::optional<std::int64_t> parse_duration(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) { text.remove_prefix(1); }
    if (text == "0") { return 0; }
    if (text.empty()) { return std::nullopt; }
    constexpr std::array<std::pair<std::string_view, double>, 8> k_units{{{"ns", 1},
                                                                          {"us", 1e3},
                                                                          {"\u00b5s", 1e3},
                                                                          {"\u03bcs", 1e3},
                                                                          {"ms", 1e6},
                                                                          {"s", 1e9},
                                                                          {"m", 6e10},
                                                                          {"h", 3.6e12}}};
    double total = 0;
    while (!text.empty()) {
        const std::size_t size = std::min(text.find_first_not_of("0123456789."), text.size());
        const auto number = parse_real(text.substr(0, size));
        if (size == 0 || !number) { return std::nullopt; }
        text.remove_prefix(size);
        double unit = 0;
        const std::size_t name = std::min(text.find_first_of("0123456789."), text.size());
        for (const auto& [word, nanos] : k_units) {
            if (text.substr(0, name) == word) { unit = nanos; }
        }
        if (unit == 0) { return std::nullopt; }
        text.remove_prefix(name);
        total += *number * unit;
    }
    if (total > 9.2e18) { return std::nullopt; }
    return static_cast<std::int64_t>(negative ? -total : total);
}

std::string duration_text(std::int64_t nanos) {
    if (nanos == 0) { return "0s"; }
    const std::string sign = nanos < 0 ? "-" : "";
    const std::uint64_t size = nanos < 0 ? ~static_cast<std::uint64_t>(nanos) + 1 : static_cast<std::uint64_t>(nanos);
    const auto with_point = [](std::uint64_t value, std::uint64_t unit, int digits) {
        std::string out = std::to_string(value / unit);
        std::string rest = fmt::format("{:0{}}", value % unit, digits);
        while (!rest.empty() && rest.back() == '0') { rest.pop_back(); }
        return rest.empty() ? out : out + '.' + rest;
    };
    if (size < 1000) { return sign + std::to_string(size) + "ns"; }
    if (size < 1'000'000) { return sign + with_point(size, 1000, 3) + "\u00b5s"; }
    if (size < 1'000'000'000) { return sign + with_point(size, 1'000'000, 6) + "ms"; }
    const std::uint64_t minutes = size / 60'000'000'000;
    std::string out = with_point(size % 60'000'000'000, 1'000'000'000, 9) + 's';
    if (minutes > 0) { out = std::to_string(minutes % 60) + 'm' + out; }
    if (minutes >= 60) { out = std::to_string(minutes / 60) + 'h' + out; }
    return sign + out;
}

}  // namespace kmm::recipe::tmpl
