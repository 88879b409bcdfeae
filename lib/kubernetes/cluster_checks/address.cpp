// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cluster_checks/address.hpp"

#include <cctype>
#include <vector>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::kubernetes {
namespace {

constexpr unsigned k_groups = 8;  // of IPv6

std::optional<Address> parse_v4(std::string_view text) {
    const auto parts = base::split(text, '.');
    if (parts.size() != 4) { return std::nullopt; }
    Address address;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto number = base::parse_number<std::uint8_t>(parts[i]);
        if (!number) { return std::nullopt; }
        address.bytes.at(i) = *number;
    }
    return address;
}

/// Groups between colons, "" for none.
std::optional<std::vector<std::uint16_t>> parse_groups(std::string_view text) {
    std::vector<std::uint16_t> groups;
    if (text.empty()) { return groups; }
    for (const auto part : base::split(text, ':')) {
        if (part.empty() || part.size() > 4) { return std::nullopt; }
        unsigned number = 0;
        for (const char c : part) {
            const auto digit = std::string_view("0123456789abcdefABCDEF").find(c);
            if (digit == std::string_view::npos) { return std::nullopt; }
            number = number * 16 + static_cast<unsigned>(digit < 16 ? digit : digit - 6);
        }
        groups.push_back(static_cast<std::uint16_t>(number));
    }
    return groups;
}

std::optional<Address> parse_v6(std::string_view text) {
    const auto gap = text.find("::");
    const auto head = parse_groups(text.substr(0, gap));
    const auto tail = gap == std::string_view::npos ? std::optional(std::vector<std::uint16_t>())
                                                    : parse_groups(text.substr(gap + 2));
    if (!head || !tail) { return std::nullopt; }
    const auto count = head->size() + tail->size();
    if (gap == std::string_view::npos ? count != k_groups : count >= k_groups) { return std::nullopt; }
    Address address;
    address.is_v6 = true;
    const auto set = [&](std::size_t group, std::uint16_t number) {
        address.bytes.at(2 * group) = static_cast<std::uint8_t>(number >> 8U);
        address.bytes.at(2 * group + 1) = static_cast<std::uint8_t>(number & 255U);
    };
    for (std::size_t i = 0; i < head->size(); ++i) { set(i, (*head)[i]); }
    for (std::size_t i = 0; i < tail->size(); ++i) { set(k_groups - tail->size() + i, (*tail)[i]); }
    return address;
}

}  // namespace

std::string Address::text() const {
    if (!is_v6) { return fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]); }
    std::array<unsigned, k_groups> groups{};
    for (unsigned i = 0; i < k_groups; ++i) { groups.at(i) = bytes.at(2 * i) * 256U + bytes.at(2 * i + 1); }
    unsigned gap = k_groups, length = 1;  // a single zero is written
    for (unsigned i = 0; i < k_groups; ++i) {
        unsigned end = i;
        while (end < k_groups && groups.at(end) == 0) { ++end; }
        if (end - i > length) {
            gap = i;
            length = end - i;
        }
    }
    std::string made;
    for (unsigned i = 0; i < k_groups; ++i) {
        if (i == gap) {
            made += "::";
            i += length - 1;
            continue;
        }
        if (!made.empty() && made.back() != ':') { made += ':'; }
        made += fmt::format("{:x}", groups.at(i));
    }
    return made;
}

std::optional<Address> parse_address(std::string_view text) {
    return text.find(':') == std::string_view::npos ? parse_v4(text) : parse_v6(text);
}

std::optional<Address> AddressRange::at(unsigned index) const {
    const unsigned bits = (first.is_v6 ? 128U : 32U) - prefix;
    if (bits < 8 && index >= (1U << bits)) { return std::nullopt; }
    auto found = first;
    auto& last = found.bytes.at(first.is_v6 ? 15 : 3);
    last = static_cast<std::uint8_t>(last + index);
    return found;
}

std::optional<AddressRange> parse_range(std::string_view text) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) { return std::nullopt; }
    const auto address = parse_address(text.substr(0, slash));
    const auto prefix = base::parse_number<unsigned>(text.substr(slash + 1));
    if (!address || !prefix || *prefix > (address->is_v6 ? 128U : 32U)) { return std::nullopt; }
    AddressRange range{*address, *prefix};
    for (unsigned bit = range.prefix; bit < (address->is_v6 ? 128U : 32U); ++bit) {
        range.first.bytes.at(bit / 8) &= static_cast<std::uint8_t>(~(128U >> (bit % 8)));
    }
    return range;
}

bool is_endpoint(std::string_view text) {
    if (parse_address(text)) { return true; }
    const auto colon = text.rfind(':');
    const auto port = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    if (!port.empty() && base::parse_number<std::uint16_t>(port).value_or(0) == 0) { return false; }
    auto host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') { host = host.substr(1, host.size() - 2); }
    return parse_address(host) || (!host.empty() && std::isalnum(static_cast<unsigned char>(host.front())) != 0 &&
                                   host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") ==
                                       std::string_view::npos);
}

}  // namespace kmm::kubernetes
