// SPDX-License-Identifier: Apache-2.0
// Sprig's functions of given times. "Local" is UTC, so that a chart renders alike everywhere.
#include <array>

#include <fmt/format.h>

#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/sprig/sprig.hpp"

namespace kmm::recipe::tmpl {

namespace {

Time moment_of(const Value& value) {
    if (value.type() == Type::time) { return value.as_time(); }
    if (value.is_int()) {
        Time moment;
        moment.seconds = value.as_int();
        return moment;
    }
    throw Fault{
        fmt::format("not deterministic: {} is not a time, and Sprig takes the present one for it", type_name(value)),
        "not-deterministic", "give a time of toDate, or seconds since 1970 as int64"};
}

std::string in_zone(std::string_view layout, const Value& value, std::string_view zone) {
    if (zone != "UTC" && zone != "Local" && !zone.empty()) {
        throw Fault{fmt::format("the time zone {} is not supported, only UTC", quote_text(zone)), "unsupported-zone",
                    "use UTC"};
    }
    Time moment = moment_of(value);
    moment.offset = 0;
    moment.zone = "UTC";
    return format_time(moment, layout);
}

Value date(Call&, List& a) { return Value::string(in_zone(a[0].text(), a[1], "Local")); }
Value date_in_zone(Call&, List& a) { return Value::string(in_zone(a[0].text(), a[1], a[2].text())); }

Time moved(Time moment, std::int64_t nanos) {
    (void)time_text(moment);  // refuses what is out of range
    const std::int64_t sum = moment.nanos + nanos % 1'000'000'000;
    moment.seconds += nanos / 1'000'000'000 + (sum >= 1'000'000'000 ? 1 : sum < 0 ? -1 : 0);
    moment.nanos = (sum + 1'000'000'000) % 1'000'000'000;
    return moment;
}

Value date_modify(Call&, List& a) {
    const auto nanos = parse_duration(a[0].text());
    return nanos ? Value::time(moved(a[1].as_time(), *nanos)) : a[1];
}

Value must_date_modify(Call&, List& a) {
    const auto nanos = parse_duration(a[0].text());
    if (!nanos) { throw Fault{fmt::format("time: invalid duration {}", quote_text(a[0].text()))}; }
    return Value::time(moved(a[1].as_time(), *nanos));
}

Time year_one() {
    Time moment;
    moment.seconds = -62135596800;
    return moment;
}

Value to_date(Call&, List& a) { return Value::time(parse_time(a[0].text(), a[1].text()).value_or(year_one())); }

Value must_to_date(Call&, List& a) {
    const auto moment = parse_time(a[0].text(), a[1].text());
    if (!moment) {
        throw Fault{
            fmt::format("parsing time {} as {}: it does not fit", quote_text(a[1].text()), quote_text(a[0].text()))};
    }
    return Value::time(*moment);
}

Value duration(Call&, List& a) {
    std::int64_t seconds = 0;
    if (a[0].is_text()) { seconds = parse_int(a[0].text(), 10).value_or(0); }
    if (a[0].type() == Type::int64) { seconds = a[0].as_int(); }
    return Value::string(
        duration_text(static_cast<std::int64_t>(static_cast<std::uint64_t>(seconds) * 1'000'000'000U)));
}

Value duration_round(Call&, List& a) {
    if (a[0].type() == Type::time) { (void)moment_of(Value::nil()); }
    std::int64_t nanos = 0;
    if (a[0].is_text()) { nanos = parse_duration(a[0].text()).value_or(0); }
    if (a[0].type() == Type::int64) { nanos = a[0].as_int(); }
    const std::uint64_t size = nanos < 0 ? ~static_cast<std::uint64_t>(nanos) + 1 : static_cast<std::uint64_t>(nanos);
    constexpr std::uint64_t k_second = 1'000'000'000, k_hour = 3600 * k_second;
    constexpr std::array<std::pair<std::uint64_t, std::string_view>, 6> k_units{{{k_hour * 24 * 365, "y"},
                                                                                 {k_hour * 24 * 30, "mo"},
                                                                                 {k_hour * 24, "d"},
                                                                                 {k_hour, "h"},
                                                                                 {60 * k_second, "m"},
                                                                                 {k_second, "s"}}};
    for (const auto& [unit, name] : k_units) {
        if (size > unit) { return Value::string(fmt::format("{}{}", size / unit, name)); }
    }
    return Value::string("0s");
}

Value html_date(Call&, List& a) { return Value::string(in_zone("2006-01-02", a[0], "Local")); }
Value html_date_in_zone(Call&, List& a) { return Value::string(in_zone("2006-01-02", a[0], a[1].text())); }
Value unix_epoch(Call&, List& a) { return Value::string(std::to_string(a[0].as_time().seconds)); }

}  // namespace

std::span<const Function> time_functions() {
    static const Function table[] = {
        {"date", "sa", false, date},
        {"dateInZone", "sas", false, date_in_zone},
        {"date_in_zone", "sas", false, date_in_zone},
        {"htmlDate", "a", false, html_date},
        {"htmlDateInZone", "as", false, html_date_in_zone},
        {"dateModify", "st", false, date_modify},
        {"date_modify", "st", false, date_modify},
        {"mustDateModify", "st", false, must_date_modify},
        {"must_date_modify", "st", false, must_date_modify},
        {"toDate", "ss", false, to_date},
        {"mustToDate", "ss", false, must_to_date},
        {"duration", "a", false, duration},
        {"durationRound", "a", false, duration_round},
        {"unixEpoch", "t", false, unix_epoch},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
