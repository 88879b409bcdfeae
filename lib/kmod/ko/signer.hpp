// SPDX-License-Identifier: Apache-2.0
// Signs module files as the kernel's scripts/sign-file does: a detached PKCS#7 message without attributes and
// certificates, a trailer, a marker. Source: Linux 6.1 scripts/sign-file.c, include/linux/module_signature.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kmod/ko/module_file.hpp"

namespace kmm::kmod {

/// A private key with its certificate and a digest.
class ModuleSigner {
public:
    /// What a signer is made of. The names are for messages; the key never stands in one.
    struct Material {
        std::string key, key_name;                  ///< PEM, also encrypted
        std::string certificate, certificate_name;  ///< PEM or DER
        std::optional<std::string> passphrase;      ///< of an encrypted key
        std::string digest = "sha256";              ///< sha224, sha256, sha384 or sha512
    };

    /// Errors: data (65) "bad-key" for a key that cannot be read (a wrong passphrase too), is neither RSA nor EC, has
    /// a curve or length that no kernel computes with, or for an unknown digest; "bad-certificate"; "key-mismatch" if
    /// the certificate is another key's.
    explicit ModuleSigner(const Material& material);
    ~ModuleSigner();
    ModuleSigner(ModuleSigner&&) noexcept;
    ModuleSigner& operator=(ModuleSigner&&) noexcept;

    /// `module`, which has no signature, with one at its end. With an RSA key the same bytes give the same bytes.
    [[nodiscard]] std::string sign(std::string_view module) const;
    /// What read_signature will say of it.
    [[nodiscard]] const ModuleSignature& identity() const noexcept { return identity_; }
    /// What does not keep kernels from loading such a module, or not all of them: a short RSA key, a new curve, a
    /// certificate whose time is over or has not begun; a passphrase that the key does not need.
    [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
    ModuleSignature identity_;
    std::vector<std::string> warnings_;
};

/// `bytes` without the signatures at their end: sign-file appends another one to a signed file, and the kernel then
/// takes the older one for a part of the module. Errors: data (65) "module-format" for a damaged trailer. `file` is for
/// messages.
[[nodiscard]] std::string_view unsigned_module(std::string_view bytes, const std::string& file);

}  // namespace kmm::kmod
