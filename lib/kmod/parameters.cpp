// SPDX-License-Identifier: Apache-2.0
#include "kmod/parameters.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"

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
    if (entry.value.size() >= 2 && entry.value.front() == '"' && entry.value.back() == '"') entry.value = entry.value.substr(1, entry.value.size() - 2);
    return entry;
}

/// What the kernel splits its parameter line at: a blank, and the no-break space of Latin-1, which is also a byte of UTF-8 characters.
bool needs_quotes(const std::string& value) { return value.find(' ') != std::string::npos || value.find('\xa0') != std::string::npos; }

struct Integer {
    std::uint64_t magnitude = 0;
    bool negative = false;
    bool minus = false;  ///< written with one, which an unsigned parameter does not take even before 0
    friend bool operator==(const Integer& a, const Integer& b) { return a.magnitude == b.magnitude && a.negative == b.negative; }
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

/// 1, 0, or -1 for a text that is no boolean.
int truth_of(const std::string& text) {
    if (text.empty()) return 1;  // a bare key
    const char first = text.front();
    if (first == 'y' || first == 'Y' || first == 't' || first == 'T' || text == "1") return 1;
    if (first == 'n' || first == 'N' || first == 'f' || first == 'F' || text == "0") return 0;
    const std::string word = base::to_lower(text);
    return word == "on" ? 1 : word == "off" ? 0 : -1;
}

constexpr std::size_t k_text_max = 1024;  // param_set_charp

struct Range {
    std::string_view type;
    std::int64_t low;
    std::uint64_t high;
};

constexpr Range k_ranges[] = {
    {"byte", 0, UINT8_MAX},           {"short", INT16_MIN, INT16_MAX}, {"ushort", 0, UINT16_MAX}, {"int", INT32_MIN, INT32_MAX},
    {"uint", 0, UINT32_MAX},          {"hexint", 0, UINT32_MAX},       {"long", INT64_MIN, INT64_MAX}, {"ulong", 0, UINT64_MAX},
    {"ullong", 0, UINT64_MAX},
};

/// nullopt if `value` fits `type`, else what was expected. Types of the module's own making are not judged.
std::optional<std::string> misfit(const std::string& type, const std::string& value) {
    constexpr std::string_view array = "array of ";
    if (type.starts_with(array)) {
        const std::string item = type.substr(array.size());
        for (const auto piece : base::split(value, ',')) {
            if (misfit(item, std::string(piece))) return fmt::format("a list of {} separated by commas", item);
        }
        return std::nullopt;
    }
    if (type == "bool" || type == "invbool" || type == "bint") {
        if (!value.empty() && truth_of(value) >= 0) return std::nullopt;
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

/// Whether the kernel refuses a bare key: not for booleans, and not known of types of the module's own making.
bool needs_value(const std::string& type) {
    return type == "charp" || type == "string" || type == "invbool" || type.starts_with("array of ") ||
           std::any_of(std::begin(k_ranges), std::end(k_ranges), [&](const Range& range) { return range.type == type; });
}

}  // namespace

void check_parameters(const ModuleFile& module, const std::vector<std::string>& wanted, Diagnostics& findings) {
    const auto declared = module.parameters();
    std::vector<std::string> names;
    for (const auto& parameter : declared) names.push_back(parameter.name);
    const auto find = [&](std::string code, std::string message, std::string hint) {
        findings.push_back(Diagnostic{Severity::error, std::move(code), std::move(message), std::nullopt, std::move(hint), Exit::checks_failed});
    };
    for (const auto& text : wanted) {
        const Entry entry = unquoted_entry(text);
        if (entry.key.empty() || entry.key == "--" || (entry.key + entry.value).find('"') != std::string::npos ||
            std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }) ||
            needs_quotes(entry.key)) {
            find("bad-parameter", fmt::format("parameter '{}' is malformed, expected KEY=VALUE without control characters and quotes inside", base::escape(text)), {});
            continue;
        }
        if (entry.key == "async_probe" || entry.key == "dyndbg") continue;  // the kernel's own, known to every module
        const std::string key = normalise_name(entry.key);
        const auto it = std::find_if(declared.begin(), declared.end(), [&](const Parameter& p) { return normalise_name(p.name) == key; });
        if (it == declared.end()) {
            const auto near = base::nearest(entry.key, names);
            find("unknown-parameter",
                 fmt::format("module {} has no parameter '{}', found {}", module.name, base::escape(entry.key), names.empty() ? "none" : base::join(names, ", ")),
                 near ? fmt::format("did you mean {}?", *near) : "the kernel would ignore it; remove it from the Module's parameters");
        } else if (!entry.has_value && needs_value(it->type)) {
            find("bad-parameter", fmt::format("parameter '{}' of module {} needs a value", entry.key, module.name), {});
        } else if (!entry.has_value) {
            continue;
        } else if (const auto expected = misfit(it->type, entry.value)) {
            find("bad-parameter", fmt::format("parameter {}={} of module {} does not fit its type {}: expected {}", entry.key, base::escape(entry.value), module.name,
                                              it->type, *expected), {});
        }
    }
}

std::string parameter_text(const std::vector<std::string>& wanted) {
    std::string text;
    for (const auto& item : wanted) {
        if (!text.empty()) text += ' ';
        const Entry entry = unquoted_entry(item);
        text += entry.key;
        if (entry.has_value) text += needs_quotes(entry.value) ? fmt::format("=\"{}\"", entry.value) : "=" + entry.value;
    }
    return text;
}

bool shows_value(const std::string& type, const std::string& wanted, const std::string& shown) {
    if (base::trim(wanted) == base::trim(shown)) return true;  // sysfs ends each value with a line break
    if (type == "bool" || type == "invbool" || type == "bint" || shown == "Y" || shown == "N") return truth_of(wanted) == truth_of(shown) && truth_of(wanted) >= 0;
    if (wanted.empty() && !needs_value(type)) return true;  // a bare key: what is shown for it is the module's own affair
    if (type == "charp" || type == "string" || type.empty()) return false;
    const auto left = base::split(wanted, ',');
    const auto right = base::split(shown, ',');
    if (left.size() > right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
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

}  // namespace kmm::kmod
