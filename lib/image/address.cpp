// SPDX-License-Identifier: Apache-2.0
#include "image/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <vector>

#include "base/text.hpp"

namespace kmm::image {

namespace {

constexpr std::size_t k_groups = 8;
constexpr std::string_view k_digits = "0123456789";
constexpr std::string_view k_hex = "0123456789abcdefABCDEF";

/// The groups of one side of "::"; nullopt if one is not 1 to 4 hexadecimal digits.
std::optional<std::vector<unsigned>> groups_of(std::string_view text) {
    std::vector<unsigned> groups;
    if (text.empty()) {
        return groups;
    }
    for (const std::string_view part : base::split(text, ':')) {
        if (part.empty() || part.size() > 4 || part.find_first_not_of(k_hex) != std::string_view::npos) {
            return std::nullopt;
        }
        unsigned group = 0;
        std::from_chars(part.data(), part.data() + part.size(), group, 16);
        groups.push_back(group);
    }
    return groups;
}

}  // namespace

bool is_ipv4_like(std::string_view host) {
    const std::string_view last = host.substr(host.rfind('.') + 1);
    const bool hex = last.starts_with("0x") || last.starts_with("0X");
    return hex ? last.find_first_not_of(k_hex, 2) == std::string_view::npos
               : last.find_first_not_of(k_digits) == std::string_view::npos;
}

bool is_plain_ipv4(std::string_view host) {
    const auto parts = base::split(host, '.');
    return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
        unsigned value = 0;
        const auto read = std::from_chars(part.data(), part.data() + part.size(), value);
        return part.size() <= 3 && read.ec == std::errc() && read.ptr == part.data() + part.size() && value <= 255 &&
               (part.size() == 1 || part.front() != '0');
    });
}

std::optional<std::string> plain_ipv6(std::string_view text) {
    const std::size_t gap = text.find("::");
    const bool is_short = gap != std::string_view::npos;
    const auto left = groups_of(text.substr(0, gap));
    const auto right = groups_of(is_short ? text.substr(gap + 2) : "");
    if (!left || !right) {
        return std::nullopt;
    }
    const std::size_t given = left->size() + right->size();
    if (is_short ? given >= k_groups : given != k_groups) {
        return std::nullopt;
    }
    std::array<unsigned, k_groups> groups{};
    std::copy(left->begin(), left->end(), groups.begin());
    std::copy(right->begin(), right->end(), groups.end() - static_cast<std::ptrdiff_t>(right->size()));
    std::size_t run = k_groups;
    std::size_t run_size = 1;  // one group of zeros stays
    for (std::size_t i = 0; i < k_groups; ++i) {
        std::size_t end = i;
        while (end < k_groups && groups[end] == 0) {
            ++end;
        }
        if (end - i > run_size) {
            run = i;
            run_size = end - i;
        }
    }
    std::string plain;
    for (std::size_t i = 0; i < k_groups; ++i) {
        if (i == run) {
            plain += "::";
            i += run_size - 1;
            continue;
        }
        plain += fmt::format("{}{:x}", plain.empty() || plain.ends_with(':') ? "" : ":", groups[i]);
    }
    return plain;
}

bool is_ipv4_inside(std::string_view plain) {
    const auto are_two = [&](std::string_view before) {
        const std::string_view tail = plain.starts_with(before) ? plain.substr(before.size()) : std::string_view();
        return std::count(tail.begin(), tail.end(), ':') == 1 && tail.find("::") == std::string_view::npos;
    };
    return are_two("::ffff:") || are_two("::");
}

std::optional<std::string> other_spelling(std::string_view registry) {
    constexpr std::string_view k_port = ":443";
    if (registry.ends_with(k_port)) {
        return std::string(registry.substr(0, registry.size() - k_port.size()));
    }
    const std::size_t bracket = registry.rfind(']');
    const bool has_port = registry.find(':', bracket == std::string_view::npos ? 0 : bracket) != std::string_view::npos;
    return has_port ? std::nullopt : std::optional(std::string(registry) + std::string(k_port));
}

}  // namespace kmm::image
