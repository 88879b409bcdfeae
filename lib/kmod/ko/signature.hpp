// SPDX-License-Identifier: Apache-2.0
// The signature that is appended to a module file: who made it. It is read, never verified: only the kernel's own
// verdict counts. Source: Linux include/linux/module_signature.h, scripts/sign-file.c,
// crypto/asymmetric_keys/x509_public_key.c.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kmod/ko/module_file.hpp"

struct X509_name_st;  // OpenSSL's X509_NAME
struct x509_st;       // OpenSSL's X509

namespace kmm::kmod {

/// A module file, taken apart where its signature begins. The views are into the file's bytes.
struct AppendedSignature {
    bool present = false;      ///< the marker is there
    std::string_view content;  ///< what was signed
    std::string_view message;  ///< the PKCS#7 message
    std::string fault;         ///< why it cannot be taken apart, "" if it can
};

/// Takes the uncompressed `bytes` apart as Linux kernel/module/signing.c and kernel/module_signature.c do.
[[nodiscard]] AppendedSignature split_signature(std::string_view bytes);

/// The end of `bytes` that split_signature and read_signature look at: the signature with trailer and marker, ""
/// without the marker.
[[nodiscard]] std::string_view signature_part(std::string_view bytes);

/// Facts of the appended signature. With a damaged one `fault` says why and the rest is empty.
[[nodiscard]] ModuleSignature read_signature(std::string_view bytes);

/// A certificate that the firmware holds: of the machine's owner (MokListRT), or of the firmware's (db).
struct EnrolledCertificate {
    std::string issuer;  ///< as ModuleSignature::signer
    std::string serial;  ///< in hex, as DER has it
    std::string id;      ///< subject key identifier in hex, else the serial number: what /proc/keys shows
};

/// A certificate in DER form; nullopt if it is damaged.
[[nodiscard]] std::optional<EnrolledCertificate> read_enrolled(std::string_view der);

/// "signer NAME, key ID, digest sha256" for each signer, with what is known.
[[nodiscard]] std::string signature_text(const ModuleSignature& signature);

/// The common name of a distinguished name, else its organisation or address, as the kernel names keys; "" if it has
/// none of them.
[[nodiscard]] std::string name_text(const X509_name_st* name);

/// Whether `certificate` names `issuer` in its authority key identifier, by key identifier or by issuer and serial
/// number. Names alone do not count for kernels.
[[nodiscard]] bool names_issuer(x509_st* certificate, x509_st* issuer);

/// The first digest of the signers that is weak, "" if none is.
[[nodiscard]] std::string weak_digest_of(const ModuleSignature& signature);

/// True for a digest whose collisions can be made, so that a signature of one module fits another: MD4, MD5, SHA-1. As
/// in ModuleSignature.
[[nodiscard]] bool is_weak_digest(std::string_view digest) noexcept;

}  // namespace kmm::kmod
