// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/hash.hpp"

namespace kmm::registry {

Hasher::Hasher(image::DigestAlgorithm algorithm)
    : algorithm_(algorithm),
      hasher_(algorithm == image::DigestAlgorithm::sha512 ? digest::Algorithm::sha512 : digest::Algorithm::sha256) {}

Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(std::string_view bytes) { hasher_.add(bytes); }

void Hasher::reset() { hasher_.reset(); }

image::Digest Hasher::finish() {
    image::Digest digest;
    digest.algorithm = algorithm_;
    digest.hex = hasher_.hex();
    return digest;
}

image::Digest digest_of(std::string_view bytes, image::DigestAlgorithm algorithm) {
    Hasher hasher(algorithm);
    hasher.update(bytes);
    return hasher.finish();
}

}  // namespace kmm::registry
