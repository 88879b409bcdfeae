// SPDX-License-Identifier: Apache-2.0
#include "digest/digest.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::digest {
namespace {

using Bytes = std::array<std::uint8_t, EVP_MAX_MD_SIZE>;

const EVP_MD* method_of(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::sha1: return ::EVP_sha1();
        case Algorithm::sha256: return ::EVP_sha256();
        case Algorithm::sha512: return ::EVP_sha512();
    }
    throw bug("an unknown digest algorithm");
}

Error refused() { return bug("OpenSSL refused to compute a digest"); }

std::string hex_of(const Bytes& bytes, unsigned length) {
    return base::to_hex(std::span<const std::uint8_t>(bytes).first(length));
}

}  // namespace

struct Hasher::State {
    Algorithm algorithm;
    EVP_MD_CTX* context = ::EVP_MD_CTX_new();

    explicit State(Algorithm wanted) : algorithm(wanted) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { ::EVP_MD_CTX_free(context); }
};

Hasher::Hasher(Algorithm algorithm) : state_(std::make_unique<State>(algorithm)) { reset(); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::add(std::string_view bytes) {
    if (::EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) != 1) throw refused();
}

std::string Hasher::hex() {
    Bytes bytes{};
    unsigned length = 0;
    if (::EVP_DigestFinal_ex(state_->context, bytes.data(), &length) != 1) throw refused();
    return hex_of(bytes, length);
}

void Hasher::reset() {
    if (state_->context == nullptr ||
        ::EVP_DigestInit_ex(state_->context, method_of(state_->algorithm), nullptr) != 1)
        throw refused();
}

std::string hex(std::string_view bytes, Algorithm algorithm) {
    Bytes digest{};
    unsigned length = 0;
    if (::EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, method_of(algorithm), nullptr) != 1)
        throw refused();
    return hex_of(digest, length);
}

std::string sha256_hex(std::string_view bytes) { return hex(bytes, Algorithm::sha256); }

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
    Bytes mac{};
    unsigned length = 0;
    const auto* text = reinterpret_cast<const unsigned char*>(bytes.data());
    if (::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), text, bytes.size(), mac.data(), &length) ==
        nullptr)
        throw refused();
    return hex_of(mac, length);
}

}  // namespace kmm::digest
