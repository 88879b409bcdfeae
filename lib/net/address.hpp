// SPDX-License-Identifier: Apache-2.0
// How public a network address is: the ground rule against being sent to somebody's inner network.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kmm::net {

/// From most to least public. A request that may go to one kind may go to every kind before it.
enum class AddressScope {
    global,      ///< routed on the Internet
    site,        ///< private networks: RFC 1918, RFC 6598, fc00::/7
    loopback,    ///< 127.0.0.0/8, ::1
    link_local,  ///< 169.254.0.0/16 (metadata services), fe80::/10, unspecified, multicast, reserved
};

/// "public", "private", "loopback" or "link-local".
[[nodiscard]] std::string_view to_string(AddressScope scope) noexcept;

/// The scope of an address written in numbers: IPv6 with or without brackets, IPv4 in every form that C libraries
/// accept
/// ("127.1", "0x7f000001"). IPv4 inside IPv6 (::ffff:, 64:ff9b::, 2002::) counts as IPv4. nullopt for a host name.
[[nodiscard]] std::optional<AddressScope> literal_scope(std::string_view host);

/// An address in numbers and its scope.
struct NamedScope {
    AddressScope scope = AddressScope::global;
    std::string address;
};

/// The most or the least public address of `host`, as this machine resolves it; nullopt for a name that it does not
/// know.
enum class Pick { most_public, least_public };
[[nodiscard]] std::optional<NamedScope> look_up(const std::string& host, Pick pick);

}  // namespace kmm::net
