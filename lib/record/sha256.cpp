// SPDX-License-Identifier: Apache-2.0
// The only place of this room that sees OpenSSL.
#include "record/sha256.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::record {

std::string sha256_hex(std::string_view bytes) {
    std::array<std::uint8_t, 32> digest{};
    unsigned int length = 0;
    if (::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, ::EVP_sha256(), nullptr) != 1 ||
        length != digest.size()) {
        throw bug("SHA-256 is not available in this OpenSSL");
    }
    return base::to_hex(digest);
}

}  // namespace kmm::record
