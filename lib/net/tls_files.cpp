// SPDX-License-Identifier: Apache-2.0
#include "net/tls_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/trust.hpp"

namespace kmm::net {
namespace {

constexpr const char* k_authority_variable = "SSL_CERT_FILE";
constexpr std::string_view k_pem_start = "-----BEGIN ";
constexpr std::size_t k_file_max = 16U << 20U;

/// Without their text.
std::vector<Authority> named_authorities(const TlsSettings& tls) {
    std::vector<Authority> files;
    for (const std::string& path : tls.more_ca_files) {
        files.push_back({path, "CA file"});
    }
    const char* path = std::getenv(k_authority_variable);
    if (path != nullptr && ::access(path, R_OK) == 0 && tls.ca_pem.empty() && !tls.insecure) {
        files.push_back({path, fmt::format("CA file of {}", k_authority_variable)});
    }
    if (!tls.ca_file.empty()) {
        files.push_back({tls.ca_file, "CA file"});
    }
    return files;
}

std::string read_tls_file(const std::string& path, const std::string& what) {
    if (::access(path.c_str(), R_OK) != 0) {
        const int saved = errno;
        throw from_errno(saved, what + " " + path, "ca-file");
    }
    try {
        return sys::read_trusted_file(path, what, k_file_max);
    } catch (const Error& error) {
        if (error.code() == "untrusted-file") {
            throw;
        }
        throw Error(error.exit(), "ca-file", what + " " + base::escape(path) + ": " + error.message());
    }
}

}  // namespace

TlsFiles read_tls_files(const TlsSettings& tls) {
    TlsFiles files;
    files.authorities = named_authorities(tls);
    for (Authority& authority : files.authorities) {
        authority.pem = read_tls_file(authority.path, authority.what);
        if (!tls.insecure && authority.pem.find(k_pem_start) == std::string::npos) {
            throw bad_authority(authority);
        }
    }
    if (!tls.client_certificate.empty()) {
        files.client_certificate_pem = read_tls_file(tls.client_certificate, "client certificate");
        files.client_key_pem = read_tls_file(tls.client_key, "key of the client certificate");
    }
    return files;
}

Error bad_authority(const Authority& authority) {
    return Error(Exit::data, "bad-certificate",
                 fmt::format("{} {}: expected certificates in PEM form, found none", authority.what,
                             base::escape(authority.path)))
        .hint("name a file with certificates as text; openssl x509 -inform DER turns one in DER form into PEM form");
}

}  // namespace kmm::net
