// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/hash.hpp"

#include <openssl/evp.h>

#include <array>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::registry {

struct Hasher::Impl {
    image::DigestAlgorithm algorithm;
    EVP_MD_CTX* context = EVP_MD_CTX_new();

    explicit Impl(image::DigestAlgorithm wanted) : algorithm(wanted) {}
    ~Impl() { EVP_MD_CTX_free(context); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
};

Hasher::Hasher(image::DigestAlgorithm algorithm) : impl_(std::make_unique<Impl>(algorithm)) { reset(); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(std::string_view bytes) {
    if (EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) != 1) {
        throw bug("OpenSSL refused to hash");
    }
}

void Hasher::reset() {
    const EVP_MD* method = impl_->algorithm == image::DigestAlgorithm::sha512 ? EVP_sha512() : EVP_sha256();
    if (impl_->context == nullptr || EVP_DigestInit_ex(impl_->context, method, nullptr) != 1) {
        throw bug("OpenSSL refused to start a digest");
    }
}

image::Digest Hasher::finish() {
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> bytes{};
    unsigned length = 0;
    if (EVP_DigestFinal_ex(impl_->context, bytes.data(), &length) != 1) {
        throw bug("OpenSSL refused to finish a digest");
    }
    image::Digest digest;
    digest.algorithm = impl_->algorithm;
    digest.hex = base::to_hex(std::span<const std::uint8_t>(bytes).first(length));
    return digest;
}

image::Digest digest_of(std::string_view bytes, image::DigestAlgorithm algorithm) {
    Hasher hasher(algorithm);
    hasher.update(bytes);
    return hasher.finish();
}

}  // namespace kmm::registry
