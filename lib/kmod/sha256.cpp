// SPDX-License-Identifier: Apache-2.0
// Adapter of OpenSSL's digest functions.
#include <openssl/evp.h>

#include <array>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/files.hpp"

namespace kmm::kmod {

std::string sha256_hex(std::string_view bytes) {
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
        throw bug("the SHA-256 digest of a module could not be computed");
    }
    return base::to_hex(std::span<const std::uint8_t>(digest.data(), length));
}

}  // namespace kmm::kmod
