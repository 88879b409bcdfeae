// SPDX-License-Identifier: Apache-2.0
#include "net/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace kmm::net {

namespace {

AddressScope scope_of_v4(std::uint32_t address) {
    struct Row {
        std::uint32_t network;
        int bits;
        AddressScope scope;
    };
    static constexpr std::array<Row, 12> k_rows{{
        {0x00000000U, 8, AddressScope::link_local},   // "this host": connects to loopback on Linux
        {0x0A000000U, 8, AddressScope::site},         // 10/8
        {0x64400000U, 10, AddressScope::site},        // 100.64/10
        {0x7F000000U, 8, AddressScope::loopback},     // 127/8
        {0xA9FE0000U, 16, AddressScope::link_local},  // 169.254/16
        {0xAC100000U, 12, AddressScope::site},        // 172.16/12
        {0xC0000000U, 24, AddressScope::site},        // 192.0.0/24
        {0xC0A80000U, 16, AddressScope::site},        // 192.168/16
        {0xC6120000U, 15, AddressScope::site},        // 198.18/15
        {0xE0000000U, 4, AddressScope::link_local},   // multicast
        {0xF0000000U, 4, AddressScope::link_local},   // reserved, broadcast
        {0xC0586300U, 24, AddressScope::site},        // 192.88.99/24
    }};
    for (const Row& row : k_rows) {
        const std::uint32_t mask = ~std::uint32_t{0} << (32 - row.bits);
        if ((address & mask) == row.network) {
            return row.scope;
        }
    }
    return AddressScope::global;
}

using Bytes16 = std::array<std::uint8_t, 16>;

std::uint32_t v4_at(const Bytes16& bytes, std::size_t offset) {
    return (std::uint32_t{bytes[offset]} << 24U) | (std::uint32_t{bytes[offset + 1]} << 16U) |
           (std::uint32_t{bytes[offset + 2]} << 8U) | std::uint32_t{bytes[offset + 3]};
}

AddressScope scope_of_v6(const Bytes16& bytes) {
    const auto zeros = [&](std::size_t from, std::size_t to) {
        return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                           bytes.begin() + static_cast<std::ptrdiff_t>(to), [](std::uint8_t b) { return b == 0; });
    };
    if (zeros(0, 15) && bytes[15] == 1) {
        return AddressScope::loopback;
    }
    if (zeros(0, 16)) {
        return AddressScope::link_local;
    }
    if (zeros(0, 12) || (zeros(0, 10) && bytes[10] == 0xFF && bytes[11] == 0xFF)) {
        return scope_of_v4(v4_at(bytes, 12));
    }
    if (bytes[0] == 0x00 && bytes[1] == 0x64 && bytes[2] == 0xFF && bytes[3] == 0x9B) {
        return scope_of_v4(v4_at(bytes, 12));
    }
    if (bytes[0] == 0x20 && bytes[1] == 0x02) {
        return scope_of_v4(v4_at(bytes, 2));
    }
    if ((bytes[0] & 0xFEU) == 0xFC) {
        return AddressScope::site;
    }
    if ((bytes[0] == 0xFE && (bytes[1] & 0x80U) != 0) || bytes[0] == 0xFF) {
        return AddressScope::link_local;
    }
    return AddressScope::global;
}

}  // namespace

std::string_view to_string(AddressScope scope) noexcept {
    switch (scope) {
        case AddressScope::global: return "public";
        case AddressScope::site: return "private";
        case AddressScope::loopback: return "loopback";
        case AddressScope::link_local: break;
    }
    return "link-local";
}

std::optional<AddressScope> literal_scope(std::string_view host) {
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    }
    const std::string text(host.substr(0, host.find('%')));
    Bytes16 v6{};
    if (::inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) {
        return scope_of_v6(v6);
    }
    in_addr v4{};
    if (!text.empty() && text.find(' ') == std::string::npos && ::inet_aton(text.c_str(), &v4) != 0) {
        return scope_of_v4(ntohl(v4.s_addr));
    }
    return std::nullopt;
}

std::optional<NamedScope> look_up(const std::string& host, Pick pick) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    if (host.empty() || ::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) {
        return std::nullopt;
    }
    std::optional<NamedScope> found;
    for (const addrinfo* item = list; item != nullptr; item = item->ai_next) {
        std::array<char, 64> text{};
        if (::getnameinfo(item->ai_addr, item->ai_addrlen, text.data(), static_cast<socklen_t>(text.size()), nullptr, 0,
                          NI_NUMERICHOST) != 0) {
            continue;
        }
        const auto scope = literal_scope(text.data());
        if (scope && (!found || (pick == Pick::most_public ? *scope < found->scope : *scope > found->scope))) {
            found = NamedScope{*scope, text.data()};
        }
    }
    ::freeaddrinfo(list);
    return found;
}

}  // namespace kmm::net
