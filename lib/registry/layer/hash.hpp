// SPDX-License-Identifier: Apache-2.0
// Streaming digests.
#pragma once

#include <string_view>

#include "digest/digest.hpp"
#include "image/digest.hpp"

namespace kmm::registry {

/// Digest of a stream of bytes, as images name it. Move only.
class Hasher {
public:
    explicit Hasher(image::DigestAlgorithm algorithm = image::DigestAlgorithm::sha256);
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;

    void update(std::string_view bytes);
    /// Forgets everything seen.
    void reset();
    /// The digest of everything since the start or reset(); the hasher must be reset before it is used again.
    [[nodiscard]] image::Digest finish();

private:
    image::DigestAlgorithm algorithm_;
    digest::Hasher hasher_;
};

/// Digest of `bytes`.
[[nodiscard]] image::Digest digest_of(std::string_view bytes,
                                      image::DigestAlgorithm algorithm = image::DigestAlgorithm::sha256);

}  // namespace kmm::registry
