// SPDX-License-Identifier: Apache-2.0
// Addresses and ranges of addresses, as kubeadm reads them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kmm::kubernetes {

/// An address of IPv4 or IPv6.
struct Address {
    std::array<std::uint8_t, 16> bytes{};  ///< of IPv4 the first four
    bool is_v6 = false;

    /// As it is written; of IPv6 without the longest run of zeros.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool is_loopback() const;
    friend bool operator==(const Address&, const Address&) = default;
};
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

/// A range as 10.96.0.0/12.
struct AddressRange {
    Address first;
    unsigned prefix = 0;  ///< bits that all have

    /// The address after `index` others, which is below 256; nullopt if the range is smaller.
    [[nodiscard]] std::optional<Address> at(unsigned index) const;
    [[nodiscard]] bool holds(const Address& address) const;
};
[[nodiscard]] std::optional<AddressRange> parse_range(std::string_view text);

/// HOST, HOST:PORT or [HOST]:PORT.
struct Endpoint {
    std::string host;                 ///< all of the text if that is neither of the last two
    std::optional<std::string> port;  ///< nullopt: the text has no port
};
[[nodiscard]] Endpoint split_endpoint(std::string_view text);

/// Whether kubeadm takes the text for HOST or HOST:PORT.
[[nodiscard]] bool is_endpoint(std::string_view text);

/// The host of a URL, in lower case and without brackets.
[[nodiscard]] std::string host_of(std::string_view url);
/// Whether the host of the URL is the machine itself.
[[nodiscard]] bool is_loopback_url(std::string_view url);

/// The one form of URLs that differ only in case of scheme and host, in the form of an address, and in a "/" as path.
[[nodiscard]] std::string plain_url(std::string_view url);
/// The one form of ranges that hold the same addresses; other texts as they are.
[[nodiscard]] std::string plain_range(std::string_view text);

}  // namespace kmm::kubernetes
