// SPDX-License-Identifier: Apache-2.0
// Addresses and ranges of addresses, as kubeadm reads them. Private to this room.
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
    friend bool operator==(const Address&, const Address&) = default;
};
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

/// A range as 10.96.0.0/12.
struct AddressRange {
    Address first;
    unsigned prefix = 0;  ///< bits that all have

    /// The address after `index` others, which is below 256; nullopt if the range is smaller.
    [[nodiscard]] std::optional<Address> at(unsigned index) const;
};
[[nodiscard]] std::optional<AddressRange> parse_range(std::string_view text);

/// Whether kubeadm takes the text for HOST or HOST:PORT.
[[nodiscard]] bool is_endpoint(std::string_view text);

}  // namespace kmm::kubernetes
