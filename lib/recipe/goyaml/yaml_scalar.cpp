// SPDX-License-Identifier: Apache-2.0
// Which type a plain scalar of YAML 1.1 has.
#include <algorithm>
#include <array>
#include <cmath>

#include "recipe/govalue/clock.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::tmpl {

Scalar resolve_scalar(std::string_view in) {
    Scalar scalar;
    const char first = in.empty() ? 'N' : in[0];
    constexpr std::array<std::string_view, 11> k_true{"y",    "Y",    "yes", "Yes", "YES", "true",
                                                      "True", "TRUE", "on",  "On",  "ON"};
    constexpr std::array<std::string_view, 11> k_false{"n",     "N",     "no",  "No",  "NO", "false",
                                                       "False", "FALSE", "off", "Off", "OFF"};
    constexpr std::array<std::string_view, 5> k_null{"", "~", "null", "Null", "NULL"};
    const auto is_in = [&](const auto& words) { return std::find(words.begin(), words.end(), in) != words.end(); };
    if (is_in(k_null)) {
        scalar.kind = Resolved::null;
    } else if (is_in(k_true) || is_in(k_false)) {
        scalar.kind = Resolved::boolean;
        scalar.truth = is_in(k_true);
    } else if (in == "<<") {
        scalar.kind = Resolved::text;
        // go-yaml looks at the first letter before its table, and '<' is none of those.
    } else if (first == '.') {
        if (in == ".nan" || in == ".NaN" || in == ".NAN") {
            scalar.kind = Resolved::real;
            scalar.real = std::nan("");
        } else if (in == ".inf" || in == ".Inf" || in == ".INF") {
            scalar.kind = Resolved::real;
            scalar.real = HUGE_VAL;
        } else if (const auto number = parse_real(in)) {
            scalar.kind = Resolved::real;
            scalar.real = *number;
        }
    } else if (first == '+' || first == '-' || is_digit(static_cast<unsigned char>(first))) {
        if (in.substr(1) == ".inf" || in.substr(1) == ".Inf" || in.substr(1) == ".INF") {
            if (first == '+' || first == '-') {
                scalar.kind = Resolved::real;
                scalar.real = first == '-' ? -HUGE_VAL : HUGE_VAL;
                return scalar;
            }
        }
        if (in.size() > 4 && in[4] == '-' && in.find_first_not_of("0123456789") == 4) {
            for (const auto layout : {"2006-1-2T15:4:5.999999999Z07:00", "2006-1-2t15:4:5.999999999Z07:00",
                                      "2006-1-2 15:4:5.999999999", "2006-1-2"}) {
                if (parse_time(layout, in)) {
                    scalar.kind = Resolved::timestamp;
                    return scalar;
                }
            }
        }
        std::string bare(in);
        std::erase(bare, '_');
        if (const auto number = parse_int(bare, 0)) {
            scalar.kind = Resolved::integer;
            scalar.integer = *number;
        } else if (const auto size = bare[0] == '+' || bare[0] == '-' ? std::nullopt : parse_uint(bare, 0)) {
            scalar.kind = Resolved::uint;
            scalar.integer = static_cast<std::int64_t>(*size);
        } else {
            std::string_view form = bare;
            if (form[0] == '+' || form[0] == '-') { form.remove_prefix(1); }
            const bool style = form.find_first_not_of("0123456789.eE+-") == std::string_view::npos && !form.empty() &&
                               (is_digit(static_cast<unsigned char>(form[0])) ||
                                (form[0] == '.' && form.size() > 1 && is_digit(static_cast<unsigned char>(form[1]))));
            const auto real_number = style ? parse_real(bare) : std::nullopt;
            if (real_number) {
                scalar.kind = Resolved::real;
                scalar.real = *real_number;
            }
        }
    }
    return scalar;
}

}  // namespace kmm::recipe::tmpl
