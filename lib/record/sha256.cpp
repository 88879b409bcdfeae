// SPDX-License-Identifier: Apache-2.0
// The only place of this room that sees OpenSSL.
#include "record/sha256.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

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

struct Sha256::State {
    EVP_MD_CTX* context = ::EVP_MD_CTX_new();
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { ::EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    if (state_->context == nullptr || ::EVP_DigestInit_ex(state_->context, ::EVP_sha256(), nullptr) != 1)
        throw bug("SHA-256 is not available in this OpenSSL");
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
    if (::EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) throw bug("SHA-256 failed");
}

std::string Sha256::hex() {
    std::array<std::uint8_t, 32> digest{};
    unsigned int length = 0;
    if (::EVP_DigestFinal_ex(state_->context, digest.data(), &length) != 1 || length != digest.size())
        throw bug("SHA-256 failed");
    return base::to_hex(digest);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
    std::array<std::uint8_t, 32> mac{};
    unsigned int length = 0;
    const auto* text = reinterpret_cast<const unsigned char*>(bytes.data());
    if (::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), text, bytes.size(), mac.data(), &length) ==
            nullptr ||
        length != mac.size()) {
        throw bug("HMAC-SHA256 is not available in this OpenSSL");
    }
    return base::to_hex(mac);
}

}  // namespace kmm::record
