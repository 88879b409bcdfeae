// SPDX-License-Identifier: Apache-2.0
// Would a kernel that trusts certain certificates take the signatures of an image's modules? What the kernel does is
// repeated: the certificate is found by issuer and serial number or by subject key identifier, and the signature is
// verified with its key. Source: Linux kernel/module/signing.c, crypto/asymmetric_keys/pkcs7_verify.c, pkcs7_trust.c.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kmod/host/module_index.hpp"

namespace kmm::kernel {

/// An X.509 certificate that a kernel is taken to trust. Its validity in time does not count: kernels do not look at
/// it.
struct Certificate {
    std::string der;      ///< the certificate itself
    std::string subject;  ///< common name, else organisation, "" if it has neither
    std::string source;   ///< file it was read from, as the user named it
};

/// The certificates of `path`: one in DER form, or one or more in PEM form.
/// Errors: not_found (66) "cert-not-found"; data (65) "bad-certificate"; io.
[[nodiscard]] std::vector<Certificate> read_certificates(const std::string& path);

/// What is known of a module's signature.
enum class Trust {
    none,         ///< there is no signature
    unchecked,    ///< no certificate was given to check it against, or OpenSSL does not know its algorithms
    trusted,      ///< verified with the key of one of the certificates
    unknown_key,  ///< made with a key of none of them
    bad,          ///< damaged, or it does not fit the module
};

/// "unsigned", "not-checked", "trusted", "unknown-key" or "bad".
[[nodiscard]] std::string_view to_string(Trust trust) noexcept;

struct SignatureCheck {
    Trust trust = Trust::none;
    std::string certificate;  ///< subject of the certificate that trust comes from, "" otherwise
    std::string fault;        ///< with `bad`, and `unchecked` in spite of certificates: why, a clause
};

/// Checks the signature at the end of `bytes`, an uncompressed module file. Without certificates: none, unchecked or
/// bad. Cost: one digest of the file. Never throws for whatever the bytes are.
[[nodiscard]] SignatureCheck check_signature(std::string_view bytes, const std::vector<Certificate>& trusted);

/// check_signature of every module of `index`, by module name; reads the files again. Errors: those of reading.
[[nodiscard]] std::map<std::string, SignatureCheck> check_signatures(const kmod::ModuleIndex& index,
                                                                     const std::vector<Certificate>& trusted);

}  // namespace kmm::kernel
