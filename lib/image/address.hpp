// SPDX-License-Identifier: Apache-2.0
// Addresses of registries, which have one spelling: what a policy, a mirror or a login says of a registry is found by
// its text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kmm::image {

/// Whether a resolver takes `host` for an IPv4 address: its last part is a number, also as in "127.1" or "0x7f000001".
[[nodiscard]] bool is_ipv4_like(std::string_view host);

/// Whether `host` is four decimal numbers up to 255 without leading zeros.
[[nodiscard]] bool is_plain_ipv4(std::string_view host);

/// The spelling of RFC 5952 of an IPv6 address without brackets: lower case, the longest run of zeros as "::". nullopt
/// for what is none, and for one that ends in an IPv4 address with dots.
[[nodiscard]] std::optional<std::string> plain_ipv6(std::string_view text);

/// Whether a plain_ipv6 stands for an IPv4 address: ::ffff:a:b, or ::a:b.
[[nodiscard]] bool is_ipv4_inside(std::string_view plain);

/// The other spelling of one registry: "HOST" for "HOST:443" and the other way round, as HTTPS has port 443 where none
/// is written. nullopt for other ports.
[[nodiscard]] std::optional<std::string> other_spelling(std::string_view registry);

}  // namespace kmm::image
