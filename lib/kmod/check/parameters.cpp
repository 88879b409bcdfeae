// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/parameters.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kmod/check/preflight.hpp"

namespace kmm::kmod {

namespace {

struct Entry {
    std::string key, value;
    bool has_value = false;
};

Entry split_entry(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) return {text, {}, false};
    return {text.substr(0, equals), text.substr(equals + 1), true};
}

/// A value in double quotes means what is between them, as for the kernel and for modprobe.
Entry unquoted_entry(const std::string& text) {
    Entry entry = split_entry(text);
    if (entry.value.size() >= 2 && entry.value.front() == '"' && entry.value.back() == '"')
        entry.value = entry.value.substr(1, entry.value.size() - 2);
    return entry;
}

/// What the kernel splits its parameter line at: a blank, and the no-break space of Latin-1, which is also a byte of
/// UTF-8 characters.
bool needs_quotes(const std::string& value) {
    return value.find(' ') != std::string::npos || value.find('\xa0') != std::string::npos;
}

struct Integer {
    std::uint64_t magnitude = 0;
    bool negative = false;
    bool minus = false;  ///< written with one, which an unsigned parameter does not take even before 0
    friend bool operator==(const Integer& a, const Integer& b) {
        return a.magnitude == b.magnitude && a.negative == b.negative;
    }
};

/// Whole-text integer in the kernel's notations (decimal, 0x, leading 0 for octal).
std::optional<Integer> read_integer(std::string_view text) {
    const bool minus = text.starts_with('-');
    if (minus || text.starts_with('+')) text.remove_prefix(1);
    int radix = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        radix = 16;
        text.remove_prefix(2);
    } else if (text.size() > 1 && text.starts_with('0')) {
        radix = 8;
    }
    const auto value = base::parse_number<std::uint64_t>(text, radix);
    if (!value) return std::nullopt;
    return Integer{*value, minus && *value != 0, minus};
}

bool is_integer(std::string_view text, std::int64_t low, std::uint64_t high) {
    const auto number = read_integer(text);
    if (!number || (number->minus && low >= 0)) return false;
    if (number->negative) return low < 0 && number->magnitude <= static_cast<std::uint64_t>(-(low + 1)) + 1;
    return number->magnitude <= high;
}

/// 1, 0, or -1 for a text that is no boolean. The beginning counts: kstrtobool() of Linux lib/kstrtox.c, of 6.15 with
/// "e" and "d".
int truth_of(const std::string& text) {
    if (text.empty()) return 1;  // a bare key
    const std::string head = base::to_lower(text.substr(0, 2));
    switch (head.front()) {
        case 'y': case 't': case 'e': case '1': return 1;
        case 'n': case 'f': case 'd': case '0': return 0;
        default: return head == "on" ? 1 : head == "of" ? 0 : -1;
    }
}

bool is_bool(const std::string& type) { return type == "bool" || type == "invbool" || type == "bint"; }

/// Major and minor version of the kernel that a module was built for; nullopt if vermagic does not tell.
using Version = std::pair<int, int>;

std::optional<Version> version_of(const ModuleFile& module) {
    const std::string text = module.vermagic();
    const auto parts = base::split(text, '.');
    if (parts.size() < 2) return std::nullopt;
    const auto first = base::parse_number<int>(parts[0]);
    const auto second = base::parse_number<int>(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
    return first && second ? std::optional(Version{*first, *second}) : std::nullopt;
}

constexpr Version k_true_and_false{5, 19};       // from which on kstrtobool() knows "true" and "false",
constexpr Version k_enabled_and_disabled{6, 15}; // "enabled" and "disabled"

/// Why a boolean that a kernel takes may not be what is meant, "" if that is clear.
std::string doubt_of(const std::string& value, const std::optional<Version>& kernel) {
    static constexpr std::string_view words[] = {"y",  "n",   "yes",    "no",      "1",       "0",
                                                 "on", "off", "t",      "f",       "true",    "false",
                                                 "e",  "d",   "enable", "disable", "enabled", "disabled"};
    const std::string word = base::to_lower(value);
    if (std::find(std::begin(words), std::end(words), word) == std::end(words)) {
        return fmt::format("is read as {}: of a bool the kernel looks at the beginning only",
                           truth_of(value) == 1 ? "y" : "n");
    }
    const bool newer = word.front() == 't' || word.front() == 'f';
    if (newer && kernel && *kernel < k_true_and_false)
        return "may be refused: a bool is y or n for kernels before 5.19";
    return {};
}

constexpr std::size_t k_text_max = 1024;  // param_set_charp
constexpr std::string_view k_array = "array of ";

struct Range {
    std::string_view type;
    std::int64_t low;
    std::uint64_t high;
};

constexpr Range k_ranges[] = {
    {"byte", 0, UINT8_MAX},         {"short", INT16_MIN, INT16_MAX}, {"ushort", 0, UINT16_MAX},
    {"int", INT32_MIN, INT32_MAX},  {"uint", 0, UINT32_MAX},         {"hexint", 0, UINT32_MAX},
    {"long", INT64_MIN, INT64_MAX}, {"ulong", 0, UINT64_MAX},        {"ullong", 0, UINT64_MAX},
};

/// The same for a value of `type`, or a list of such.
std::string doubt_of_value(const std::string& type, const std::string& value, const std::optional<Version>& kernel) {
    if (is_bool(type)) return doubt_of(value, kernel);
    if (!type.starts_with(k_array) || !is_bool(type.substr(k_array.size()))) return {};
    for (const auto piece : base::split(value, ',')) {
        if (auto doubt = doubt_of(std::string(piece), kernel); !doubt.empty()) return doubt;
    }
    return {};
}

/// nullopt if `value` fits `type`, else what was expected. Types of the module's own making are not judged.
std::optional<std::string> misfit(const std::string& type, const std::string& value,
                                  const std::optional<Version>& kernel) {
    if (type.starts_with(k_array)) {
        const std::string item = type.substr(k_array.size());
        for (const auto piece : base::split(value, ',')) {
            if (misfit(item, std::string(piece), kernel)) return fmt::format("a list of {} separated by commas", item);
        }
        return std::nullopt;
    }
    if (is_bool(type)) {
        const char first = value.empty() ? '\0' : base::to_lower(value).front();
        const bool newer = (first == 'e' || first == 'd') && !(kernel && *kernel >= k_enabled_and_disabled);
        if (!value.empty() && !newer && truth_of(value) >= 0) return std::nullopt;
        return "y or n";
    }
    if (type == "charp" && value.size() > k_text_max) return fmt::format("a text of at most {} bytes", k_text_max);
    for (const auto& range : k_ranges) {
        if (range.type != type) continue;
        if (is_integer(value, range.low, range.high)) return std::nullopt;
        return fmt::format("a number from {} to {}", range.low, range.high);
    }
    return std::nullopt;
}

/// What notation a number has that does not fit, where that may be why; "" else.
std::string notation_of(const std::string& type, const std::string& value) {
    if (type.starts_with(k_array)) {
        const std::string item = type.substr(k_array.size());
        for (const auto piece : base::split(value, ',')) {
            const std::string text(piece);
            if (misfit(item, text, std::nullopt)) return notation_of(item, text);
        }
        return {};
    }
    if (std::none_of(std::begin(k_ranges), std::end(k_ranges), [&](const Range& range) { return range.type == type; }))
        return {};
    std::string_view digits = value;
    const bool minus = digits.starts_with('-');
    if (minus || digits.starts_with('+')) digits.remove_prefix(1);
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
        digits.remove_prefix(2);
        const bool whole =
            !digits.empty() && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
        return whole ? "" : "hexadecimal digits follow 0x";
    }
    if (digits.size() < 2 || digits.front() != '0' || digits.find_first_not_of("0123456789") != std::string_view::npos)
        return {};
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    const std::string decimal = fmt::format("{}{}", minus ? "-" : "", digits);
    return misfit(type, decimal, std::nullopt)
               ? ""
               : fmt::format("a 0 in front makes a number octal: write {} for the decimal one", decimal);
}

/// Whether the kernel refuses a bare key: not for booleans, and not known of types of the module's own making.
bool needs_value(const std::string& type) {
    return type == "charp" || type == "string" || type == "invbool" || type.starts_with(k_array) ||
           std::any_of(std::begin(k_ranges), std::end(k_ranges),
                       [&](const Range& range) { return range.type == type; });
}

}  // namespace

void check_parameters(const ModuleFile& module, const std::vector<std::string>& wanted, Diagnostics& findings) {
    const auto declared = module.parameters();
    std::vector<std::string> names;
    for (const auto& parameter : declared) names.push_back(parameter.name);
    const auto kernel = version_of(module);
    const auto find = [&](std::string code, std::string message, std::string hint,
                          Severity severity = Severity::error) {
        findings.push_back(Diagnostic{severity, std::move(code), std::move(message), std::nullopt, std::move(hint),
                                      Exit::checks_failed});
    };
    std::map<std::string, std::string> given;  // key -> the entry that had it last
    for (const auto& text : wanted) {
        const Entry entry = unquoted_entry(text);
        if (entry.key.empty() || entry.key == "--" || (entry.key + entry.value).find('"') != std::string::npos ||
            std::any_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }) ||
            needs_quotes(entry.key)) {
            find("bad-parameter",
                 fmt::format(
                     "parameter '{}' is malformed, expected KEY=VALUE without control characters and quotes inside",
                     base::escape(text)),
                 {});
            continue;
        }
        if (entry.key == "async_probe" || entry.key == "dyndbg") {
            find("odd-parameter",
                 fmt::format("parameter {} is the kernel's own and none of module {}: {}", entry.key, module.name,
                             entry.key == "dyndbg"
                                 ? "it switches debug messages on"
                                 : "devices are probed after the load, which does not tell how that ends"),
                 "leave it out if that is not meant", Severity::warning);
            continue;
        }
        const std::string key = normalise_name(entry.key);
        const auto [before, first] = given.try_emplace(key, text);
        if (!first && before->second != text) {
            find("odd-parameter",
                 fmt::format("parameter {} of module {} is given twice: the kernel sets {}, then {}", entry.key,
                             module.name, base::escape(before->second), base::escape(text)),
                 "give it once", Severity::warning);
            before->second = text;
        }
        const auto it = std::find_if(declared.begin(), declared.end(),
                                     [&](const Parameter& p) { return normalise_name(p.name) == key; });
        if (it == declared.end()) {
            const auto dot = key.find('.');
            const bool of_command_line = dot != std::string::npos && key.substr(0, dot) == module.name;
            const auto near = base::nearest(of_command_line ? entry.key.substr(dot + 1) : entry.key, names);
            find("unknown-parameter",
                 fmt::format("module {} has no parameter '{}', found {}", module.name, base::escape(entry.key),
                             names.empty() ? "none" : base::join(names, ", ")),
                 near ? fmt::format("did you mean {}?{}", *near,
                                    of_command_line ? " MODULE.PARAMETER is the form of the kernel command line" : "")
                      : "the kernel would ignore it; remove it from the Module's parameters");
        } else if (!entry.has_value && needs_value(it->type)) {
            find("bad-parameter", fmt::format("parameter '{}' of module {} needs a value", entry.key, module.name), {});
        } else if (!entry.has_value) {
            continue;
        } else if (const auto expected = misfit(it->type, entry.value, kernel)) {
            find("bad-parameter",
                 fmt::format("parameter {}={} of module {} does not fit its type {}: expected {}", entry.key,
                             base::escape(entry.value), module.name, it->type, *expected),
                 notation_of(it->type, entry.value));
        } else if (const std::string doubt = doubt_of_value(it->type, entry.value, kernel); !doubt.empty()) {
            find("odd-parameter",
                 fmt::format("parameter {}={} of module {} {}", entry.key, base::escape(entry.value), module.name,
                             doubt),
                 "write y or n", Severity::warning);
        }
    }
}

std::string parameter_text(const std::vector<std::string>& wanted) {
    std::string text;
    for (const auto& item : wanted) {
        if (!text.empty()) text += ' ';
        const Entry entry = unquoted_entry(item);
        text += entry.key;
        if (entry.has_value)
            text += needs_quotes(entry.value) ? fmt::format("=\"{}\"", entry.value) : "=" + entry.value;
    }
    return text;
}

bool shows_value(const std::string& type, const std::string& wanted, const std::string& shown) {
    if (base::trim(wanted) == base::trim(shown)) return true;  // sysfs ends each value with a line break
    const bool text = type == "charp" || type == "string";
    if (is_bool(type) || (!text && (shown == "Y" || shown == "N")))
        return truth_of(wanted) == truth_of(shown) && truth_of(wanted) >= 0;
    if (wanted.empty() && !needs_value(type))
        return true;  // a bare key: what is shown for it is the module's own affair
    if (text || type.empty()) return false;
    const auto left = base::split(wanted, ',');
    const auto right = base::split(shown, ',');
    if (left.size() > right.size()) return false;
    const bool truths = type.starts_with(k_array) && is_bool(type.substr(k_array.size()));
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (truths && truth_of(std::string(left[i])) == truth_of(std::string(right[i]))) continue;
        const auto a = read_integer(left[i]);
        const auto b = read_integer(right[i]);
        if (left[i] != right[i] && (!a || !b || !(*a == *b))) return false;
    }
    return true;
}

std::map<std::string, std::string> parameter_map(const std::vector<std::string>& wanted) {
    std::map<std::string, std::string> result;
    for (const auto& item : wanted) {
        Entry entry = unquoted_entry(item);
        result.insert_or_assign(std::move(entry.key), std::move(entry.value));
    }
    return result;
}

namespace {

/// Those of `options` that `own` does not override.
std::vector<HostOption> options_beside(const std::vector<HostOption>& options, const std::vector<std::string>& own) {
    std::vector<HostOption> left;
    const auto given = parameter_map(own);
    std::copy_if(options.begin(), options.end(), std::back_inserter(left), [&](const HostOption& option) {
        const std::string key = normalise_name(option.text.substr(0, option.text.find('=')));
        return std::none_of(given.begin(), given.end(),
                            [&](const auto& entry) { return normalise_name(entry.first) == key; });
    });
    return left;
}

/// The host's options for a module that `own` does not override.
std::vector<HostOption> options_beside(const ModprobeConfig& config, const std::string& module,
                                       const std::vector<std::string>& own) {
    const auto it = config.options.find(module);
    return it == config.options.end() ? std::vector<HostOption>() : options_beside(it->second, own);
}

}  // namespace

const char* place_of(ConfigSource source) {
    return source == ConfigSource::image ? "in the image" : "on the node";
}

void check_options(const ModuleFile& module, const std::vector<HostOption>& options,
                   const std::vector<std::string>& own, Diagnostics& findings) {
    for (const auto& option : options_beside(options, own)) {
        if (option.text.find('"') != std::string::npos) continue;
        Diagnostics faults;
        check_parameters(module, {option.text}, faults);
        for (auto& fault : faults) {
            fault.message = fmt::format("{}: {}", base::escape(option.where), fault.message);
            if (fault.code == "unknown-parameter") {
                fault.severity = Severity::warning;
                fault.message += ": the kernel ignores it";
                if (!fault.hint.starts_with("did you")) fault.hint.clear();
            }
            fault.hint = fmt::format("correct that line {}{}{}", place_of(option.source),
                                     fault.hint.empty() ? "" : ": ", fault.hint);
            findings.push_back(std::move(fault));
        }
    }
}

std::map<std::string, GivenParameter> given_parameters(const ModprobeConfig& config, const ModuleFile& module,
                                                       const std::vector<std::string>& own) {
    std::map<std::string, GivenParameter> given;
    for (const auto& option : options_beside(config, module.name, own)) {
        Diagnostics faults;
        check_parameters(module, {option.text}, faults);
        const bool ignored = std::any_of(faults.begin(), faults.end(),
                                         [](const Diagnostic& fault) { return fault.code == "unknown-parameter"; });
        if (ignored) continue;
        for (auto& [key, value] : parameter_map({option.text}))
            given.insert_or_assign(key, GivenParameter{value, option.where});
    }
    for (auto& [key, value] : parameter_map(own)) given.insert_or_assign(key, GivenParameter{value, ""});
    return given;
}

std::string effective_parameters(const ModprobeConfig& config, const std::string& module,
                                 const std::vector<std::string>& own) {
    std::string text;
    for (const auto& option : options_beside(config, module, own)) text += (text.empty() ? "" : " ") + option.text;
    const std::string rest = parameter_text(own);
    return text + (text.empty() || rest.empty() ? "" : " ") + rest;
}

}  // namespace kmm::kmod
