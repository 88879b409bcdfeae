// SPDX-License-Identifier: Apache-2.0
// Keys as Sprig makes them, by OpenSSL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kmm::recipe::tmpl {

/// Sprig's derivePassword. Throws Fault for a type of password that does not exist.
[[nodiscard]] std::string derive_password(std::uint32_t counter, std::string_view kind, std::string_view password,
                                          std::string_view user, std::string_view site);
/// Sprig's decryptAES: AES-256-CBC of base 64. Throws Fault.
[[nodiscard]] std::string decrypt_aes(std::string_view password, std::string_view encoded);

}  // namespace kmm::recipe::tmpl
