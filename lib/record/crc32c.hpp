// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kmm::record {

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, as in iSCSI RFC 3720 appendix B.4). O(n).
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes) noexcept;

/// The same as eight lower-case hexadecimal digits.
[[nodiscard]] std::string crc32c_hex(std::string_view bytes);

}  // namespace kmm::record
