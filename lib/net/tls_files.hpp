// SPDX-License-Identifier: Apache-2.0
// The files that TlsSettings name, read once: a library that is given a path opens whatever stands there by then.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "net/http.hpp"

namespace kmm::net {

/// A file of authorities.
struct Authority {
    std::string path{};
    std::string what{};  ///< for messages: "CA file"
    std::string pem{};
};

struct TlsFiles {
    std::vector<Authority> authorities{};  ///< besides the system's
    std::string client_certificate_pem{};  ///< "" without TlsSettings::client_certificate
    std::string client_key_pem{};
};

/// Reads them. Besides the authorities that `tls` names, where others count at all, as for other clients: those of the
/// file that OpenSSL's variable names, unless it is not there. Errors: no_permission "untrusted-file" as root for one
/// that others may change; those of the file, with code "ca-file"; bad_authority for a file without any PEM form,
/// unless `tls` is insecure.
[[nodiscard]] TlsFiles read_tls_files(const TlsSettings& tls);

/// "bad-certificate" (65) for a file of authorities that holds none.
[[nodiscard]] Error bad_authority(const Authority& authority);

}  // namespace kmm::net
