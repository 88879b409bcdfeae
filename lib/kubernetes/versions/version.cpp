// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/version.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::kubernetes {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool is_word(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view without_v(std::string_view text) noexcept {
    if (text.starts_with('v') || text.starts_with('V')) { text.remove_prefix(1); }
    return text;
}

/// Takes the number at the front of `text`.
std::optional<std::uint32_t> take_number(std::string_view& text) {
    const auto size = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
    const std::string_view digits = text.substr(0, size);
    if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) { return std::nullopt; }
    text.remove_prefix(size);
    return base::parse_number<std::uint32_t>(digits);
}

bool take(std::string_view& text, char expected) noexcept {
    if (!text.starts_with(expected)) { return false; }
    text.remove_prefix(1);
    return true;
}

bool is_suffix(std::string_view text) noexcept {
    if (text.empty()) { return true; }
    if (text.front() != '-' && text.front() != '+') { return false; }
    const auto fits = [](char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; };
    return text.size() > 1 && is_word(text.back()) && std::all_of(text.begin(), text.end(), fits);
}

/// A suffix without its first character, in two parts: "-rc.1+k3s1" is "rc.1" and "k3s1".
struct SuffixParts {
    std::string_view dashed, plus;
    bool has_plus = false;
};

SuffixParts parts_of(std::string_view suffix) noexcept {
    const auto plus = suffix.find('+');
    SuffixParts parts;
    parts.has_plus = plus != std::string_view::npos;
    if (parts.has_plus) { parts.plus = suffix.substr(plus + 1); }
    parts.dashed = suffix.substr(0, plus);
    if (!parts.dashed.empty()) { parts.dashed.remove_prefix(1); }
    return parts;
}

bool names_pre_release(std::string_view dashed) {
    const std::string lower = base::to_lower(dashed);
    for (const std::string_view word : {"alpha", "beta", "rc", "pre"}) {
        if (lower.starts_with(word) &&
            (lower.size() == word.size() || !(lower[word.size()] >= 'a' && lower[word.size()] <= 'z'))) {
            return true;
        }
    }
    return false;
}

/// 0 for a pre-release, 1 for a release, 2 for a build that follows the release.
int rank_of(std::string_view dashed) { return dashed.empty() ? 1 : names_pre_release(dashed) ? 0 : 2; }

/// The digits, or what is not digits, at the front of `text`.
std::string_view take_run(std::string_view& text) noexcept {
    const bool digits = is_digit(text.front());
    std::size_t size = 1;
    while (size < text.size() && is_digit(text[size]) == digits) { ++size; }
    const auto run = text.substr(0, size);
    text.remove_prefix(size);
    return run;
}

std::strong_ordering compare_runs(std::string_view left, std::string_view right) noexcept {
    while (!left.empty() && !right.empty()) {
        auto a = take_run(left), b = take_run(right);
        const bool a_digits = is_digit(a.front()), b_digits = is_digit(b.front());
        if (a_digits != b_digits) { return a_digits ? std::strong_ordering::less : std::strong_ordering::greater; }
        if (a_digits) {
            while (a.size() > 1 && a.front() == '0') { a.remove_prefix(1); }
            while (b.size() > 1 && b.front() == '0') { b.remove_prefix(1); }
            if (const auto order = a.size() <=> b.size(); order != 0) { return order; }
        }
        if (const auto order = a.compare(b); order != 0) { return order <=> 0; }
    }
    return !left.empty() <=> !right.empty();
}

std::strong_ordering compare_suffixes(std::string_view left, std::string_view right) {
    const auto a = parts_of(left), b = parts_of(right);
    if (const auto order = rank_of(a.dashed) <=> rank_of(b.dashed); order != 0) { return order; }
    if (const auto order = compare_runs(a.dashed, b.dashed); order != 0) { return order; }
    if (const auto order = a.has_plus <=> b.has_plus; order != 0) { return order; }
    if (const auto order = compare_runs(a.plus, b.plus); order != 0) { return order; }
    return left.compare(right) <=> 0;  // "-rc.01" and "-rc.1"
}

}  // namespace

std::string MinorVersion::text() const { return fmt::format("v{}.{}", major, minor); }

std::optional<MinorVersion> MinorVersion::parse(std::string_view text) {
    text = without_v(text);
    const auto major = take_number(text);
    if (!major || !take(text, '.')) { return std::nullopt; }
    const auto minor = take_number(text);
    if (!minor || !text.empty()) { return std::nullopt; }
    return MinorVersion{*major, *minor};
}

std::optional<Version> Version::parse(std::string_view text) {
    text = without_v(text);
    const auto major = take_number(text);
    if (!major || !take(text, '.')) { return std::nullopt; }
    const auto minor = take_number(text);
    if (!minor || !take(text, '.')) { return std::nullopt; }
    const auto patch = take_number(text);
    if (!patch || !is_suffix(text)) { return std::nullopt; }
    return Version{*major, *minor, *patch, std::string(text)};
}

std::optional<Version> Version::of_image(std::string_view reference) {
    reference = reference.substr(0, reference.find('@'));
    const auto slash = reference.rfind('/');
    const auto colon = reference.rfind(':');
    if (colon == std::string_view::npos || (slash != std::string_view::npos && colon < slash)) { return std::nullopt; }
    std::string tag(reference.substr(colon + 1));
    std::replace(tag.begin(), tag.end(), '_', '+');
    return parse(tag);
}

std::string Version::text() const { return fmt::format("v{}.{}.{}{}", major, minor, patch, suffix); }

bool Version::is_pre_release() const { return rank_of(parts_of(suffix).dashed) == 0; }

std::strong_ordering operator<=>(const Version& left, const Version& right) {
    if (const auto order = left.major <=> right.major; order != 0) { return order; }
    if (const auto order = left.minor <=> right.minor; order != 0) { return order; }
    if (const auto order = left.patch <=> right.patch; order != 0) { return order; }
    return compare_suffixes(left.suffix, right.suffix);
}

std::int64_t minors_behind(const Version& older, const Version& newer) noexcept {
    const auto signed_of = [](std::uint32_t number) { return static_cast<std::int64_t>(number); };
    return 100 * (signed_of(newer.major) - signed_of(older.major)) + signed_of(newer.minor) - signed_of(older.minor);
}

}  // namespace kmm::kubernetes
