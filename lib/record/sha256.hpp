// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kmm::record {

/// SHA-256 as 64 lower-case hexadecimal digits. O(n).
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// HMAC-SHA256 of `bytes` with `key`, likewise.
[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

}  // namespace kmm::record
