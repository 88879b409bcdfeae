// SPDX-License-Identifier: Apache-2.0
// Source: fluxcd/pkg envsubst (parse/parse.go, parse/scan.go, funcs.go, path/match.go), a fork of drone/envsubst.
#include "cluster/folder/envsubst.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::cluster {

namespace {

constexpr std::size_t k_result_max = std::size_t{16} << 20U;
constexpr std::size_t k_matched_max = 4096;  // bytes of a value that a pattern is held against
constexpr std::size_t k_stars_max = 4;
constexpr std::size_t k_expression_depth_max = 100;

struct SubstitutionFault {
    std::string message;
    bool is_refused;
};

[[noreturn]] void refuse(std::string message) { throw SubstitutionFault{std::move(message), true}; }
[[noreturn]] void give_up(std::string message) { throw SubstitutionFault{std::move(message), false}; }

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

void require_ascii(std::string_view text) {
    if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
        give_up("a function of a text with characters outside ASCII is not followed");
    }
}

char to_lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char to_upper_letter(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

/// As Go's strconv.Atoi.
std::optional<long long> number_of(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
        if (text.starts_with('-')) { return std::nullopt; }
    }
    long long number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) { return std::nullopt; }
    return number;
}

std::string part_of(const std::string& value, const std::vector<std::string>& arguments) {
    require_ascii(value);
    const auto size = static_cast<long long>(value.size());
    auto begin = number_of(arguments.at(0));
    if (!begin) { return value; }
    if (*begin < 0) { begin = *begin < -size ? 0 : size + *begin; }
    if (arguments.size() == 1) { return *begin < size ? value.substr(static_cast<std::size_t>(*begin)) : ""; }
    const auto length = number_of(arguments[1]);
    if (!length) { return value; }
    if (*begin > size || *length >= size - *begin) {
        return *begin < size ? value.substr(static_cast<std::size_t>(*begin)) : "";
    }
    if (*length < 0) { refuse("a negative length ends the controller of Flux"); }
    return value.substr(static_cast<std::size_t>(*begin), static_cast<std::size_t>(*length));
}

/// `value` without the shortest or longest beginning that the pattern matches.
std::string without_prefix(const std::string& value, const std::string& pattern, bool is_longest) {
    require_ascii(value);
    require_ascii(pattern);
    const auto stars = static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), '*'));
    if (pattern.find('[') != std::string::npos || value.size() > k_matched_max || stars > k_stars_max) {
        give_up(fmt::format("the pattern '{}' is not followed", base::escape(pattern)));
    }
    for (std::size_t i = 1; i <= value.size(); ++i) {
        const auto length = is_longest ? value.size() + 1 - i : i;
        if (::fnmatch(pattern.c_str(), value.substr(0, length).c_str(), 0) == 0) { return value.substr(length); }
    }
    return value;
}

std::string reversed(std::string text) {
    std::reverse(text.begin(), text.end());
    return text;
}

std::string without_pattern(const std::string& value, std::string_view function, const std::string& pattern) {
    if (function.starts_with('#')) { return without_prefix(value, pattern, function == "##"); }
    return reversed(without_prefix(reversed(value), reversed(pattern), function == "%%"));
}

std::string with_replacement(const std::string& value, std::string_view function,
                             const std::vector<std::string>& arguments) {
    const auto& from = arguments.at(0);
    if (function == "/#" || function == "/%") {
        if (arguments.size() != 2) { return value; }
        if (function == "/#") { return value.starts_with(from) ? arguments[1] + value.substr(from.size()) : value; }
        return value.ends_with(from) ? value.substr(0, value.size() - from.size()) + arguments[1] : value;
    }
    if (from.empty()) { give_up("the replacement of an empty text is not followed"); }
    const std::string to = arguments.size() > 1 ? arguments[1] : std::string();
    std::string result;
    std::size_t at = 0;
    for (auto next = value.find(from); next != std::string::npos; next = value.find(from, at)) {
        result.append(value, at, next - at).append(to);
        at = next + from.size();
        if (result.size() > k_result_max) { give_up("the result is too long"); }
        if (function == "/") { break; }
    }
    return result.append(value, at, std::string::npos);
}

class Substituting {
public:
    Substituting(std::string_view text, const VariableLookup& value_of) : text_(text), value_of_(value_of) {}

    Substitution run() && {
        Substitution result;
        try {
            while (!is_at_end()) {
                if (starts("${")) {
                    result.text += expression();
                } else {
                    if (starts("$$")) { ++at_; }
                    result.text += text_[at_++];
                }
                if (result.text.size() > k_result_max) { give_up("the result is too long"); }
            }
        } catch (const SubstitutionFault& fault) {
            result.fault = fault.message;
            result.is_refused = fault.is_refused;
        }
        result.unknown = std::move(unknown_);
        return result;
    }

private:
    [[nodiscard]] bool is_at_end() const { return at_ >= text_.size(); }
    [[nodiscard]] bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }
    [[nodiscard]] char next() const { return is_at_end() ? '\0' : text_[at_]; }

    /// Up to `most` of the characters in `set`.
    std::string_view take(std::string_view set, std::size_t most) {
        const auto begin = at_;
        while (!is_at_end() && at_ - begin < most && set.find(text_[at_]) != std::string_view::npos) { ++at_; }
        return text_.substr(begin, at_ - begin);
    }

    void close() {
        if (next() != '}' || is_at_end()) { refuse_here(); }
        ++at_;
    }

    [[noreturn]] void refuse_here() const {
        constexpr std::size_t k_shown_max = 40;
        const auto end = std::min({text_.find('\n', begin_), begin_ + k_shown_max, text_.size()});
        refuse(fmt::format("bad substitution in '{}'", base::escape(text_.substr(begin_, end - begin_))));
    }

    std::string name() {
        const auto begin = at_;
        while (!is_at_end() && is_name_character(text_[at_])) { ++at_; }
        if (at_ == begin) { refuse_here(); }
        return std::string(text_.substr(begin, at_ - begin));
    }

    /// An argument: an expression, or a text up to one of `ends`, which is not empty.
    std::string argument(std::string_view ends, bool has_escapes) {
        if (starts("${")) { return expression(); }
        std::string result;
        const auto begin = at_;
        while (!is_at_end() && !starts("${")) {
            if (has_escapes && (starts("$$") || starts("\\/") || starts("\\\\"))) {
                ++at_;
            } else if (ends.find(text_[at_]) != std::string_view::npos) {
                break;
            }
            result += text_[at_++];
        }
        if (at_ == begin) { refuse_here(); }
        return result;
    }

    /// From "${" to behind the brace that closes it.
    std::string expression() {
        if (depth_++ == 0) { begin_ = at_; }
        if (depth_ > k_expression_depth_max) { give_up("the expression is nested too deeply"); }
        at_ += 2;
        std::string result;
        if (next() == '#') {
            ++at_;
            const auto variable = name();
            close();
            result = std::to_string(value_of(variable).size());
        } else {
            const auto variable = name();
            result = function_of(variable);
        }
        --depth_;
        return result;
    }

    /// From behind the name.
    std::string function_of(const std::string& variable) {
        switch (next()) {
            case '=': return default_of(variable);
            case ':':
                if (at_ + 1 < text_.size() && std::string_view("=-?+").find(text_[at_ + 1]) != std::string_view::npos) {
                    return default_of(variable);
                }
                return part(variable);
            case ',':
            case '^': {
                const auto function = take(",^", 2);
                close();
                return in_case(value_of(variable), function);
            }
            case '/': return replacement(variable);
            case '#':
            case '%': {
                const char first = next();
                const auto function = take(first == '#' ? "#" : "%", 2);
                const auto pattern = argument("}", false);
                close();
                return without_pattern(value_of(variable), function, pattern);
            }
            default: break;
        }
        close();
        return value_of(variable);
    }

    std::string default_of(const std::string& variable) {
        at_ += next() == '=' ? 1U : 2U;
        // Variables in a default that does not count are none that lack a value.
        auto unknown = unknown_;
        std::string fallback;
        while (next() != '}' || is_at_end()) {
            fallback += argument("}", false);
            if (fallback.size() > k_result_max) { give_up("the result is too long"); }
        }
        ++at_;
        const auto found = value_of_(variable);
        if (!found || found->empty()) { return fallback; }
        unknown_ = std::move(unknown);
        return std::string(*found);
    }

    std::string part(const std::string& variable) {
        ++at_;
        std::vector<std::string> arguments{argument(":}", false)};
        if (!take(":", std::numeric_limits<std::size_t>::max()).empty()) { arguments.push_back(argument("}", false)); }
        close();
        return part_of(value_of(variable), arguments);
    }

    std::string replacement(const std::string& variable) {
        std::string function(take("/", 1));
        function += take("/#%", 1);
        std::vector<std::string> arguments{argument("/", true)};
        if (take("/", std::numeric_limits<std::size_t>::max()).empty()) { refuse_here(); }
        if (next() != '}') { arguments.push_back(argument("}", true)); }
        close();
        return with_replacement(value_of(variable), function, arguments);
    }

    static std::string in_case(std::string value, std::string_view function) {
        if (function == ",^" || function == "^,") { return value; }
        const auto letter = function.front() == ',' ? to_lower_letter : to_upper_letter;
        const auto end = function.size() == 2 ? value.end() : value.begin() + (value.empty() ? 0 : 1);
        require_ascii(function.size() == 2 ? std::string_view(value) : std::string_view(value).substr(0, 1));
        std::transform(value.begin(), end, value.begin(), letter);
        return value;
    }

    std::string value_of(const std::string& variable) {
        if (const auto found = value_of_(variable)) { return std::string(*found); }
        unknown_.insert(variable);
        return {};
    }

    std::string_view text_;
    const VariableLookup& value_of_;
    std::size_t at_ = 0;
    std::size_t begin_ = 0;  ///< of the outermost expression
    std::size_t depth_ = 0;
    std::set<std::string> unknown_;
};

}  // namespace

Substitution substitute(std::string_view text, const VariableLookup& value_of) {
    return Substituting(text, value_of).run();
}

}  // namespace kmm::cluster
