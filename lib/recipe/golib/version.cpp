// SPDX-License-Identifier: Apache-2.0
#include "recipe/golib/version.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/number.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/text.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::size_t k_version_size_max = 256, k_constraint_size_max = 512, k_groups_max = 32;

bool is_number(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_number(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; }

/// Reads "a.b-c" identifiers at `at`; false if there is none.
bool take_words(std::string_view text, std::size_t& at, std::string& out) {
    const std::size_t start = at;
    for (;;) {
        const std::size_t piece = at;
        while (at < text.size() && is_word(text[at])) { ++at; }
        if (at == piece) { return false; }
        if (at >= text.size() || text[at] != '.' || at + 1 >= text.size() || !is_word(text[at + 1])) { break; }
        ++at;
    }
    out = text.substr(start, at - start);
    return true;
}

bool right_pre(std::string_view pre) {
    for (const auto& piece : split_text(pre, ".")) {
        const bool digits = piece.find_first_not_of("0123456789") == std::string::npos;
        if (digits && piece.size() > 1 && piece[0] == '0') { return false; }
    }
    return true;
}

int compare_numbers(std::uint64_t a, std::uint64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

int compare_piece(const std::string& a, const std::string& b) {
    if (a == b) { return 0; }
    if (a.empty()) { return -1; }
    if (b.empty()) { return 1; }
    const auto na = base::parse_number<std::uint64_t>(a), nb = base::parse_number<std::uint64_t>(b);
    if (!na && !nb) { return a > b ? 1 : -1; }
    if (!nb) { return -1; }
    if (!na) { return 1; }
    return *na > *nb ? 1 : -1;
}

int compare_pre(std::string_view a, std::string_view b) {
    const auto as = split_text(a, "."), bs = split_text(b, ".");
    for (std::size_t i = 0; i < std::max(as.size(), bs.size()); ++i) {
        const int order = compare_piece(i < as.size() ? as[i] : "", i < bs.size() ? bs[i] : "");
        if (order != 0) { return order; }
    }
    return 0;
}

/// One comparison of a constraint.
struct Bound {
    std::string operation;
    Version version;
    bool dirty = false, minor_dirty = false, patch_dirty = false;
};

/// A part of a version in a constraint: digits, x, X, * (and '|', which the pattern of the original lets through).
std::string take_part(std::string_view text, std::size_t& at) {
    const std::size_t start = at;
    while (at < text.size() &&
           (is_number(text[at]) || std::string_view("xX*|").find(text[at]) != std::string_view::npos)) {
        ++at;
    }
    return std::string(text.substr(start, at - start));
}

bool is_x(std::string_view part) { return part == "x" || part == "X" || part == "*"; }

/// The version of a comparison at `at`; false if there is none.
bool take_bound_version(std::string_view text, std::size_t& at, Bound& bound) {
    std::size_t next = at;
    if (next < text.size() && text[next] == 'v') { ++next; }
    std::array<std::string, 3> parts;
    parts[0] = take_part(text, next);
    if (parts[0].empty()) { return false; }
    for (std::size_t i = 1; i < 3 && next < text.size() && text[next] == '.'; ++i) {
        std::size_t behind = next + 1;
        parts.at(i) = take_part(text, behind);
        if (parts.at(i).empty()) { break; }
        next = behind;
    }
    std::string pre, metadata;
    if (next < text.size() && text[next] == '-') {
        std::size_t behind = next + 1;
        if (take_words(text, behind, pre)) { next = behind; }
    }
    if (next < text.size() && text[next] == '+') {
        std::size_t behind = next + 1;
        if (take_words(text, behind, metadata)) { next = behind; }
    }
    std::string plain;
    if (is_x(parts[0])) {
        plain = "0.0.0";
        bound.dirty = true;
    } else if (parts[1].empty() || is_x(parts[1])) {
        plain = parts[0] + ".0.0";
        bound.dirty = bound.minor_dirty = true;
    } else if (parts[2].empty() || is_x(parts[2])) {
        plain = parts[0] + '.' + parts[1] + ".0";
        bound.dirty = bound.patch_dirty = true;
    } else {
        plain = parts[0] + '.' + parts[1] + '.' + parts[2];
    }
    if (!pre.empty()) { plain += '-' + pre; }
    if (!metadata.empty() && !bound.dirty) { plain += '+' + metadata; }
    const auto version = parse_version(plain);
    if (!version) { throw Fault{"constraint parser error"}; }
    bound.version = *version;
    at = next;
    return true;
}

constexpr std::array<std::string_view, 11> k_operations{"!=", ">=", "=>", "<=", "=<", "~>", "=", ">", "<", "~", "^"};

std::string take_operation(std::string_view text, std::size_t& at) {
    for (const auto operation : k_operations) {
        if (text.substr(at).starts_with(operation)) {
            at += operation.size();
            return std::string(operation);
        }
    }
    return "";
}

void skip_blanks(std::string_view text, std::size_t& at) {
    while (at < text.size() && std::string_view(" \t\r\n\f").find(text[at]) != std::string_view::npos) { ++at; }
}

/// "1.2 - 1.4" means ">=1.2 <=1.4".
std::vector<Bound> parse_group(std::string_view text) {
    const auto wrong = [&] { return Fault{fmt::format("improper constraint: {}", quote_text(text))}; };
    std::vector<Bound> bounds;
    std::size_t at = 0;
    skip_blanks(text, at);
    for (;;) {
        Bound bound;
        bound.operation = take_operation(text, at);
        skip_blanks(text, at);
        if (!take_bound_version(text, at, bound)) { throw wrong(); }
        const std::size_t end = at;
        skip_blanks(text, at);
        std::size_t behind = at + 1;
        if (at > end && at < text.size() && text[at] == '-' && behind < text.size() && text[behind] == ' ') {
            skip_blanks(text, behind);
            Bound upper;
            upper.operation = "<=";
            if (!take_bound_version(text, behind, upper)) { throw wrong(); }
            bound.operation = ">=";
            bounds.push_back(bound);
            bounds.push_back(upper);
            at = behind;
            skip_blanks(text, at);
        } else {
            bounds.push_back(bound);
        }
        if (at >= text.size()) { return bounds; }
        if (text[at] == ',') {
            ++at;
            skip_blanks(text, at);
        } else if (at == end) {
            throw wrong();
        }
    }
}

bool tilde(const Version& v, const Bound& c) {
    if (v.compare(c.version) < 0) { return false; }
    if (c.version.major == 0 && c.version.minor == 0 && c.version.patch == 0 && !c.minor_dirty && !c.patch_dirty) {
        return true;
    }
    return v.major == c.version.major && (v.minor == c.version.minor || c.minor_dirty);
}

bool caret(const Version& v, const Bound& c) {
    if (v.compare(c.version) < 0) { return false; }
    if (c.version.major > 0 || c.minor_dirty) { return v.major == c.version.major; }
    if (v.major > 0) { return false; }
    if (c.version.minor > 0 || c.patch_dirty) { return v.minor == c.version.minor; }
    return v.minor == 0 && v.patch == c.version.patch;
}

bool differs(const Version& v, const Bound& c) {
    if (c.dirty) {
        if (c.version.major != v.major) { return true; }
        if (c.version.minor != v.minor && !c.minor_dirty) { return true; }
        if (c.minor_dirty) { return false; }
        if (c.version.patch != v.patch && !c.patch_dirty) { return true; }
        if (c.patch_dirty) {
            return (!v.pre.empty() || !c.version.pre.empty()) && compare_pre(v.pre, c.version.pre) != 0;
        }
    }
    return v.compare(c.version) != 0;
}

bool greater(const Version& v, const Bound& c) {
    if (!c.dirty) { return v.compare(c.version) > 0; }
    if (v.major != c.version.major) { return v.major > c.version.major; }
    if (c.minor_dirty) { return false; }
    if (c.patch_dirty) { return v.minor > c.version.minor; }
    return v.compare(c.version) > 0;
}

bool at_most(const Version& v, const Bound& c) {
    if (!c.dirty) { return v.compare(c.version) <= 0; }
    if (v.major > c.version.major) { return false; }
    return !(v.major == c.version.major && v.minor > c.version.minor && !c.minor_dirty);
}

bool meets(const Version& v, const Bound& c, bool with_pre) {
    if (!v.pre.empty() && !with_pre) { return false; }
    if (c.operation.empty() || c.operation == "=") { return c.dirty ? tilde(v, c) : v.compare(c.version) == 0; }
    if (c.operation == "!=") { return differs(v, c); }
    if (c.operation == ">") { return greater(v, c); }
    if (c.operation == "<") { return v.compare(c.version) < 0; }
    if (c.operation == ">=" || c.operation == "=>") { return v.compare(c.version) >= 0; }
    if (c.operation == "<=" || c.operation == "=<") { return at_most(v, c); }
    return c.operation == "^" ? caret(v, c) : tilde(v, c);
}

}  // namespace

std::string Version::text() const {
    return fmt::format("{}.{}.{}{}{}{}{}", major, minor, patch, pre.empty() ? "" : "-", pre,
                       metadata.empty() ? "" : "+", metadata);
}

int Version::compare(const Version& other) const {
    for (const int order : {compare_numbers(major, other.major), compare_numbers(minor, other.minor),
                            compare_numbers(patch, other.patch)}) {
        if (order != 0) { return order; }
    }
    if (pre.empty() || other.pre.empty()) { return pre.empty() == other.pre.empty() ? 0 : pre.empty() ? 1 : -1; }
    return compare_pre(pre, other.pre);
}

std::optional<Version> parse_version(std::string_view text) {
    if (text.size() > k_version_size_max) { return std::nullopt; }
    Version version;
    version.original = text;
    std::size_t at = text.starts_with('v') ? 1 : 0;
    int part = 0;
    for (std::uint64_t* number : {&version.major, &version.minor, &version.patch}) {
        if (part > 0) {
            if (at >= text.size() || text[at] != '.') { break; }
            ++at;
        }
        const std::size_t start = at;
        while (at < text.size() && is_number(text[at])) { ++at; }
        const std::string_view digits = text.substr(start, at - start);
        if (digits.empty()) { return std::nullopt; }
        const auto value = base::parse_number<std::uint64_t>(digits);
        if (!value) { return std::nullopt; }
        *number = *value;
        ++part;
    }
    if (at < text.size() && text[at] == '-') {
        ++at;
        if (!take_words(text, at, version.pre) || !right_pre(version.pre)) { return std::nullopt; }
    }
    if (at < text.size() && text[at] == '+') {
        ++at;
        if (!take_words(text, at, version.metadata)) { return std::nullopt; }
    }
    return at == text.size() ? std::optional(std::move(version)) : std::nullopt;
}

bool version_matches(std::string_view constraint, const Version& version) {
    if (constraint.size() > k_constraint_size_max) { throw Fault{"constraint string is too long (max 512 bytes)"}; }
    const auto groups = split_text(constraint, "||");
    if (groups.size() > k_groups_max) { throw Fault{"too many constraint groups (max 32)"}; }
    bool any = false;
    for (const auto& group : groups) {
        const auto bounds = parse_group(group);
        const bool with_pre =
            std::any_of(bounds.begin(), bounds.end(), [](const Bound& b) { return !b.version.pre.empty(); });
        any = std::all_of(bounds.begin(), bounds.end(), [&](const Bound& b) { return meets(version, b, with_pre); }) ||
              any;
    }
    return any;
}

bool is_compatible(std::string_view constraint, std::string_view version) {
    const auto parsed = parse_version(version);
    if (!parsed) { return false; }
    try {
        return version_matches(constraint, *parsed);
    } catch (const Fault&) { return false; }
}

namespace {

Method getter(std::string name, Value value) {
    return {std::move(name), "", [value = std::move(value)](const List&) { return value; }};
}

Version version_of(const Value& value) {
    const Record* record = value.as_record();
    const auto version =
        record != nullptr && record->type == "*semver.Version" ? parse_version(record->text) : std::nullopt;
    if (!version) {
        throw Fault{fmt::format("wrong type for value; expected *semver.Version; got {}", type_name(value))};
    }
    return *version;
}

Version incremented(Version version, int part) {
    const bool released = version.pre.empty();
    version.metadata.clear();
    version.pre.clear();
    if (part == 0) {
        ++version.major;
        version.minor = version.patch = 0;
    } else if (part == 1) {
        ++version.minor;
        version.patch = 0;
    } else if (released) {
        ++version.patch;
    }
    version.original = (version.original.starts_with('v') ? "v" : "") + version.text();
    return version;
}

/// With another pre-release, or with other metadata; "" takes it away.
Version with_words(Version version, const std::string& words, bool is_pre) {
    std::size_t end = 0;
    std::string taken;
    if (!words.empty() && (!take_words(words, end, taken) || end != words.size())) {
        throw Fault{is_pre ? "invalid prerelease string" : "invalid metadata string"};
    }
    if (is_pre && !right_pre(words)) { throw Fault{"version segment starts with 0"}; }
    (is_pre ? version.pre : version.metadata) = words;
    version.original = (version.original.starts_with('v') ? "v" : "") + version.text();
    return version;
}

Value changed_value(const Version& version);

/// What a version and a pointer to one can do.
void put_value_methods(Record& record, const Version& version) {
    record.has_text = true;
    record.text = version.text();
    record.methods = {getter("Major", Value::uint(version.major)),
                      getter("Minor", Value::uint(version.minor)),
                      getter("Patch", Value::uint(version.patch)),
                      getter("Prerelease", Value::string(version.pre)),
                      getter("Metadata", Value::string(version.metadata)),
                      getter("String", Value::string(version.text()))};
    constexpr std::array<const char*, 3> k_names{"IncMajor", "IncMinor", "IncPatch"};
    for (int part = 0; part < 3; ++part) {
        record.methods.push_back({k_names.at(static_cast<std::size_t>(part)), "",
                                  [version, part](const List&) { return changed_value(incremented(version, part)); }});
    }
    for (const bool is_pre : {true, false}) {
        record.methods.push_back({is_pre ? "SetPrerelease" : "SetMetadata", "s", [version, is_pre](const List& a) {
                                      return changed_value(with_words(version, a[0].text(), is_pre));
                                  }});
    }
}

/// Methods that change a version give no pointer, and what compares wants one.
Value changed_value(const Version& version) {
    auto record = std::make_shared<Record>();
    record->type = "semver.Version";
    put_value_methods(*record, version);
    return Value::record(std::move(record));
}

}  // namespace

Value version_value(const Version& version) {
    auto record = std::make_shared<Record>();
    record->type = "*semver.Version";
    record->pointer = true;
    put_value_methods(*record, version);
    record->methods.push_back(getter("Original", Value::string(version.original)));
    const auto relation = [&](std::string name, bool (*test)(int)) {
        record->methods.push_back({std::move(name), "a", [version, test](const List& a) {
                                       return Value::boolean(test(version.compare(version_of(a[0]))));
                                   }});
    };
    relation("LessThan", [](int order) { return order < 0; });
    relation("GreaterThan", [](int order) { return order > 0; });
    relation("LessThanEqual", [](int order) { return order <= 0; });
    relation("GreaterThanEqual", [](int order) { return order >= 0; });
    relation("Equal", [](int order) { return order == 0; });
    record->methods.push_back(
        {"Compare", "a", [version](const List& a) { return Value::integer(version.compare(version_of(a[0]))); }});
    return Value::record(std::move(record));
}

}  // namespace kmm::recipe::tmpl
