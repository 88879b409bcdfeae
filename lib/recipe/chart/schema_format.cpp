// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/schema_format.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "recipe/golib/regex.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/govalue/unquote.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::chart {

namespace {

using Text = std::string_view;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '-'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

template <typename Test>
bool all_of(Text text, Test&& test) {
    return std::all_of(text.begin(), text.end(), test);
}

std::size_t digits_of(Text text) {
    return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
}

/// A number of digits alone; nullopt for other texts.
std::optional<int> number_of(Text text) {
    if (text.empty() || text.size() > 6 || digits_of(text) != text.size()) { return std::nullopt; }
    return std::stoi(std::string(text));
}

/// A number as strconv.Atoi takes it, where a minus is refused: "+5" is 5.
std::optional<int> signed_number_of(Text text) {
    if (text.starts_with('+')) { text.remove_prefix(1); }
    return number_of(text);
}

bool is_json_pointer(Text text) {
    if (text.empty()) { return true; }
    if (!text.starts_with('/')) { return false; }
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '~' && (i + 1 == text.size() || (text[i + 1] != '0' && text[i + 1] != '1'))) { return false; }
    }
    return true;
}

bool is_relative_pointer(Text text) {
    const std::size_t digits = digits_of(text);
    if (digits == 0 || (digits > 1 && text[0] == '0')) { return false; }
    text.remove_prefix(digits);
    return text == "#" || is_json_pointer(text);
}

bool is_uuid(Text text) {
    constexpr std::array<std::size_t, 5> k_sizes{8, 4, 4, 4, 12};
    const auto groups = base::split(text, '-');
    return groups.size() == k_sizes.size() &&
           std::equal(groups.begin(), groups.end(), k_sizes.begin(),
                      [](Text group, std::size_t size) { return group.size() == size && all_of(group, is_hex); });
}

bool has_units(Text text, Text units) {
    while (!text.empty()) {
        const std::size_t digits = digits_of(text);
        if (digits == 0 || digits == text.size()) { return false; }
        const std::size_t unit = units.find(text[digits]);
        if (unit == Text::npos) { return false; }
        units.remove_prefix(unit + 1);
        text.remove_prefix(digits + 1);
    }
    return true;
}

bool is_duration(Text text) {
    if (!text.starts_with('P') || text.size() < 2) { return false; }
    text.remove_prefix(1);
    if (text.ends_with('W')) {
        text.remove_suffix(1);
        return !text.empty() && all_of(text, is_digit);
    }
    const auto parts = base::split(text, 'T');
    return parts.size() <= 2 && has_units(parts[0], "YMD") &&
           (parts.size() == 1 || (!parts[1].empty() && has_units(parts[1], "HMS")));
}

bool is_ipv4(Text text) {
    const auto groups = base::split(text, '.');
    return groups.size() == 4 && std::all_of(groups.begin(), groups.end(), [](Text group) {
               const auto number = signed_number_of(group);
               return number && *number <= 255 && (group.size() == 1 || group[0] != '0');
           });
}

/// How many groups of 16 bits `text` has; nullopt if one of them is none.
std::optional<std::size_t> groups_of(Text text, bool may_end_with_ipv4) {
    if (text.empty()) { return 0; }
    const auto groups = base::split(text, ':');
    std::size_t count = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const bool is_last = may_end_with_ipv4 && i + 1 == groups.size();
        if (is_last && groups[i].find('.') != Text::npos) {
            if (groups[i].find('+') != Text::npos || !is_ipv4(groups[i])) { return std::nullopt; }
            return count + 2;
        }
        if (groups[i].empty() || groups[i].size() > 4 || !all_of(groups[i], is_hex)) { return std::nullopt; }
        ++count;
    }
    return count;
}

bool is_ipv6(Text text) {
    const std::size_t gap = text.find("::");
    if (gap == Text::npos) { return groups_of(text, true) == 8; }
    const auto front = groups_of(text.substr(0, gap), false), back = groups_of(text.substr(gap + 2), true);
    return front && back && *front + *back < 8;
}

bool is_hostname(Text text) {
    if (text.ends_with('.')) { text.remove_suffix(1); }
    if (text.size() > 253) { return false; }
    const auto labels = base::split(text, '.');
    return std::all_of(labels.begin(), labels.end(), [](Text label) {
        return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
               all_of(label, is_word);
    });
}

bool is_local_part(Text text) {
    if (text.size() > 64) { return false; }
    if (text.size() > 1 && text.starts_with('"') && text.ends_with('"')) {
        return text.substr(1, text.size() - 2).find_first_of("\\\"") == Text::npos;
    }
    return !text.starts_with('.') && !text.ends_with('.') && text.find("..") == Text::npos && all_of(text, [](char c) {
        return is_letter(c) || is_digit(c) || Text(".!#$%&'*+-/=?^_`{|}~").find(c) != Text::npos;
    });
}

bool is_email(Text text) {
    const std::size_t at = text.rfind('@');
    if (text.size() > 254 || at == Text::npos || !is_local_part(text.substr(0, at))) { return false; }
    Text domain = text.substr(at + 1);
    if (domain.starts_with('[') && domain.ends_with(']')) {
        domain = domain.substr(1, domain.size() - 2);
        return domain.starts_with("IPv6:") ? is_ipv6(domain.substr(5)) : is_ipv4(domain);
    }
    return is_hostname(domain);
}

bool is_date(Text text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') { return false; }
    const auto year = number_of(text.substr(0, 4));
    const auto month = number_of(text.substr(5, 2));
    const auto day = number_of(text.substr(8, 2));
    if (!year || !month || !day || *month < 1 || *month > 12 || *day < 1) { return false; }
    constexpr std::array<int, 12> k_days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = *month == 2 && *year % 4 == 0 && (*year % 100 != 0 || *year % 400 == 0);
    return *day <= k_days[static_cast<std::size_t>(*month - 1)] + (leap ? 1 : 0);
}

bool is_time(Text text) {
    if (text.size() < 9 || text[2] != ':' || text[5] != ':') { return false; }
    const auto hour = signed_number_of(text.substr(0, 2));
    const auto minute = signed_number_of(text.substr(3, 2));
    const auto second = signed_number_of(text.substr(6, 2));
    if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) { return false; }
    text.remove_prefix(8);
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        const std::size_t digits = digits_of(text);
        if (digits == 0) { return false; }
        text.remove_prefix(digits);
    }
    int of_day = *hour * 60 + *minute;
    if (text != "z" && text != "Z") {
        if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') { return false; }
        const auto hours = signed_number_of(text.substr(1, 2));
        const auto minutes = signed_number_of(text.substr(4, 2));
        if (!hours || !minutes || *hours > 23 || *minutes > 59) { return false; }
        of_day += (text[0] == '+' ? -1 : 1) * (*hours * 60 + *minutes);
        if (of_day < 0) { of_day += 24 * 60; }
    }
    return *second < 60 || of_day == 23 * 60 + 59;
}

bool is_date_time(Text text) {
    return text.size() >= 20 && (text[10] == 't' || text[10] == 'T') && is_date(text.substr(0, 10)) &&
           is_time(text.substr(11));
}

bool is_period(Text text) {
    const std::size_t slash = text.find('/');
    if (slash == Text::npos) { return false; }
    const Text start = text.substr(0, slash), end = text.substr(slash + 1);
    if (start.starts_with('P')) { return is_duration(start) && is_date_time(end); }
    return is_date_time(start) && (end.starts_with('P') ? is_duration(end) : is_date_time(end));
}

std::optional<tmpl::Url> url_of(Text text) {
    try {
        tmpl::Url url = tmpl::parse_url(text);
        const std::string name = url.hostname();
        if (name.find(':') != std::string::npos &&
            (url.host.find('[') == std::string::npos || url.host.find(']') == std::string::npos || !is_ipv6(name))) {
            return std::nullopt;
        }
        return url;
    } catch (const tmpl::Fault&) {
        return std::nullopt;
    }
}

bool is_uri(Text text) {
    const auto url = url_of(text);
    return url && !url->scheme.empty();
}

bool is_uri_reference(Text text) { return text.find('\\') == Text::npos && url_of(text); }

bool is_uri_template(Text text) {
    const auto url = url_of(text);
    if (!url) { return false; }
    for (const auto piece : base::split(url->raw_path, '/')) {
        bool open = false;
        for (const char c : tmpl::parse_url("/" + std::string(piece)).path) {
            if (c != '{' && c != '}') { continue; }
            if (open == (c == '{')) { return false; }
            open = !open;
        }
        if (open) { return false; }
    }
    return true;
}

bool is_regex(Text text) {
    try {
        (void)tmpl::regex_matches(std::string(text), "");
        return true;
    } catch (const tmpl::Fault&) {
        return false;
    }
}

bool is_semver(Text text) {
    const auto identifiers = [](Text list, bool may_lead_with_zero) {
        const auto parts = base::split(list, '.');
        return std::all_of(parts.begin(), parts.end(), [&](Text part) {
            return !part.empty() && all_of(part, is_word) &&
                   (may_lead_with_zero || part.size() == 1 || part[0] != '0' || !all_of(part, is_digit));
        });
    };
    if (const std::size_t plus = text.find('+'); plus != Text::npos) {
        if (!identifiers(text.substr(plus + 1), true)) { return false; }
        text = text.substr(0, plus);
    }
    if (const std::size_t dash = text.find('-'); dash != Text::npos) {
        if (!identifiers(text.substr(dash + 1), false)) { return false; }
        text = text.substr(0, dash);
    }
    const auto numbers = base::split(text, '.');
    return numbers.size() == 3 && std::all_of(numbers.begin(), numbers.end(), [](Text number) {
               return !number.empty() && (number.size() == 1 || number[0] != '0') && all_of(number, is_digit);
           });
}

constexpr std::array<std::pair<Text, bool (*)(Text)>, 19> k_formats{{{"json-pointer", is_json_pointer},
                                                                     {"relative-json-pointer", is_relative_pointer},
                                                                     {"uuid", is_uuid},
                                                                     {"duration", is_duration},
                                                                     {"period", is_period},
                                                                     {"ipv4", is_ipv4},
                                                                     {"ipv6", is_ipv6},
                                                                     {"hostname", is_hostname},
                                                                     {"email", is_email},
                                                                     {"date", is_date},
                                                                     {"time", is_time},
                                                                     {"date-time", is_date_time},
                                                                     {"uri", is_uri},
                                                                     {"iri", is_uri},
                                                                     {"uri-reference", is_uri_reference},
                                                                     {"iri-reference", is_uri_reference},
                                                                     {"uri-template", is_uri_template},
                                                                     {"regex", is_regex},
                                                                     {"semver", is_semver}}};

}  // namespace

bool has_format(Text name, Text text) {
    const auto found = std::find_if(k_formats.begin(), k_formats.end(), [&](const auto& f) { return f.first == name; });
    return found == k_formats.end() || found->second(text);
}

}  // namespace kmm::recipe::chart
