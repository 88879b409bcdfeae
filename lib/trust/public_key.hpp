// SPDX-License-Identifier: Apache-2.0
// Public keys that signatures of images are verified with, by OpenSSL.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace kmm::trust {

/// An RSA, EC or Ed25519 key. Copies share the key.
class PublicKey {
public:
    /// Reads the only PEM block of `text`: PUBLIC KEY or RSA PUBLIC KEY. `name` is what messages call it.
    /// Errors: data "bad-key": not such a block, several blocks, another kind of key, an RSA key below 2048 bits.
    PublicKey(std::string_view text, std::string name);

    /// True if `signature` was made of `message` with this key's private key: SHA-256 with PKCS #1 v1.5 (RSA) or in DER
    /// form (EC), Ed25519 of the message itself. Never throws for whatever the bytes are.
    [[nodiscard]] bool verifies(std::string_view message, std::string_view signature) const;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    std::string name_;
    std::shared_ptr<void> key_;
};

}  // namespace kmm::trust
