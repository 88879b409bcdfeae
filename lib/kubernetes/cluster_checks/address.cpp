// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cluster_checks/address.hpp"

#include <algorithm>
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

/// The groups of IPv6 in the last four bytes, which may be written as an address of IPv4.
std::optional<std::vector<std::uint16_t>> parse_last_groups(std::string_view text) {
    const auto colon = text.rfind(':');
    const auto last = colon == std::string_view::npos ? text : text.substr(colon + 1);
    if (last.find('.') == std::string_view::npos) { return parse_groups(text); }
    auto groups = parse_groups(text.substr(0, colon == std::string_view::npos ? 0 : colon));
    const auto v4 = parse_v4(last);
    if (!groups || !v4 || colon == 0) { return std::nullopt; }
    const auto& bytes = v4->bytes;
    groups->push_back(static_cast<std::uint16_t>(bytes[0] * 256U + bytes[1]));
    groups->push_back(static_cast<std::uint16_t>(bytes[2] * 256U + bytes[3]));
    return groups;
}

std::optional<Address> parse_v6(std::string_view text) {
    const auto gap = text.find("::");
    const bool has_gap = gap != std::string_view::npos;
    const auto head = has_gap ? parse_groups(text.substr(0, gap)) : parse_last_groups(text);
    const auto tail = has_gap ? parse_last_groups(text.substr(gap + 2)) : std::optional(std::vector<std::uint16_t>());
    if (!head || !tail) { return std::nullopt; }
    const auto count = head->size() + tail->size();
    if (has_gap ? count >= k_groups : count != k_groups) { return std::nullopt; }
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

/// The first address that has the same `prefix` bits.
Address first_of(Address address, unsigned prefix) {
    for (unsigned bit = prefix; bit < (address.is_v6 ? 128U : 32U); ++bit) {
        address.bytes.at(bit / 8) &= static_cast<std::uint8_t>(~(128U >> (bit % 8)));
    }
    return address;
}

/// Whether the text is a name as RFC 1123 has it, in lower case.
bool is_host_name(std::string_view text) {
    constexpr std::size_t k_max = 253;
    if (text.empty() || text.size() > k_max) { return false; }
    const auto labels = base::split(text, '.');
    return std::all_of(labels.begin(), labels.end(), [](std::string_view label) {
        return !label.empty() && label.front() != '-' && label.back() != '-' &&
               label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
    });
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

bool AddressRange::holds(const Address& address) const {
    return address.is_v6 == first.is_v6 && first_of(address, prefix) == first;
}

std::optional<AddressRange> parse_range(std::string_view text) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) { return std::nullopt; }
    const auto address = parse_address(text.substr(0, slash));
    const auto prefix = base::parse_number<unsigned>(text.substr(slash + 1));
    if (!address || !prefix || *prefix > (address->is_v6 ? 128U : 32U)) { return std::nullopt; }
    return AddressRange{first_of(*address, *prefix), *prefix};
}

bool Address::is_loopback() const {
    return is_v6 ? *this == parse_v6("::1") : bytes[0] == 127;
}

Endpoint split_endpoint(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) { return {std::string(text), std::nullopt}; }
    auto host = text.substr(0, colon);
    const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (is_bracketed) { host = host.substr(1, host.size() - 2); }
    if (host.find_first_of(is_bracketed ? "[]" : ":[]") != std::string_view::npos) {
        return {std::string(text), std::nullopt};
    }
    return {std::string(host), std::string(text.substr(colon + 1))};
}

bool is_endpoint(std::string_view text) {
    const auto [host, port] = split_endpoint(text);
    if (port && !port->empty() && base::parse_number<std::uint16_t>(*port).value_or(0) == 0) { return false; }
    return parse_address(host) || is_host_name(host);
}

bool is_loopback_url(std::string_view url) {
    const auto host = host_of(url);
    const auto address = parse_address(host);
    return address ? address->is_loopback() : host == "localhost";
}

std::string host_of(std::string_view url) {
    const auto scheme = url.find("://");
    if (scheme != std::string_view::npos) { url.remove_prefix(scheme + 3); }
    const auto authority = url.substr(0, url.find_first_of("/?#"));
    auto host = split_endpoint(authority).host;
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') { host = host.substr(1, host.size() - 2); }
    return base::to_lower(host);
}

std::string plain_url(std::string_view url) {
    const auto scheme = url.find("://");
    if (scheme == std::string_view::npos) { return std::string(url); }
    const auto rest = url.substr(scheme + 3);
    const auto end = std::min(rest.find_first_of("/?#"), rest.size());
    const auto port = split_endpoint(rest.substr(0, end)).port;
    auto host = host_of(url);
    if (const auto address = parse_address(host)) {
        host = address->is_v6 ? fmt::format("[{}]", address->text()) : address->text();
    }
    const auto path = rest.substr(end);
    return fmt::format("{}://{}{}{}", base::to_lower(url.substr(0, scheme)), host, port ? ":" + *port : "",
                       path == "/" ? "" : path);
}

std::string plain_range(std::string_view text) {
    const auto range = parse_range(text);
    return range ? fmt::format("{}/{}", range->first.text(), range->prefix) : std::string(text);
}

}  // namespace kmm::kubernetes
