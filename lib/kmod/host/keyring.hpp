// SPDX-License-Identifier: Apache-2.0
// Which keys this kernel has, of whom, and which of them are revoked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kmod/host/host.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kmod {

/// Descriptions of the asymmetric keys in /proc/keys, e.g. "Debian Secure Boot CA:
/// 6ccece7e4c6c0d1f6149f3dd27dfcc5cbb419ea1: X509.rsa". nullopt when the file cannot be read or shows none (only root
/// sees the keyrings).
[[nodiscard]] std::optional<std::vector<std::string>> kernel_keys(const HostPaths& host);

/// The enrolled certificates of this machine that can be read; none without UEFI. Damaged lists end where the damage
/// begins.
[[nodiscard]] std::vector<EnrolledCertificate> enrolled_certificates(const HostPaths& host);
/// Those that the machine's owner (MokListXRT) or the firmware's (dbx) has revoked. Kernels show them in /proc/keys
/// like any other.
[[nodiscard]] std::vector<EnrolledCertificate> revoked_certificates(const HostPaths& host);
/// Whether one of `revoked` made the signature, or is an authority on the way to the key that vouches for it. Source:
/// Linux certs/blacklist.c (is_key_on_revocation_list).
[[nodiscard]] bool is_revoked(const ModuleSignature& signature, const std::vector<EnrolledCertificate>& revoked);

enum class KeyPresence { present, absent, unknown };

/// Whether a key of one of the signers is among `keys`: by its key id or those of the certificates that the message
/// carries, else by the signer's name. `own` is the signature of the kernel's own modules, null if it is not known: the
/// only key of its signer's name has its key id, and no other one. A key that is one of `enrolled` is the signer's only
/// if issuer and serial number are: a certificate that an enrolled CA has issued is not trusted for that.
[[nodiscard]] KeyPresence find_key(const ModuleSignature& signature,
                                   const std::optional<std::vector<std::string>>& keys,
                                   const ModuleSignature* own = nullptr,
                                   const std::vector<EnrolledCertificate>& enrolled = {});

}  // namespace kmm::kmod
