// SPDX-License-Identifier: Apache-2.0
// Digests of bytes, whole or in pieces, as lower-case hexadecimal digits.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace kmm::digest {

/// SHA-1 is for who asks for it by name: it proves nothing.
enum class Algorithm { sha1, sha256, sha512 };

/// Of bytes that come in pieces. Move only.
class Hasher {
public:
    explicit Hasher(Algorithm algorithm = Algorithm::sha256);
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;

    void add(std::string_view bytes);
    /// Of everything since the start or the last reset(), which must follow before more is added.
    [[nodiscard]] std::string hex();
    /// Forgets everything that was added.
    void reset();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Of `bytes`. O(n).
[[nodiscard]] std::string hex(std::string_view bytes, Algorithm algorithm);
/// The same by SHA-256: 64 digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// HMAC-SHA256 of `bytes` with `key`: 64 digits.
[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

}  // namespace kmm::digest
