// SPDX-License-Identifier: Apache-2.0
#include "sys/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.hpp"
#include "sys/trust.hpp"

namespace kmm::sys {
namespace {

/// What the C library itself ignores in programs that get rights of another user, and what libcurl, libssl, libxml2
/// and GnuTLS read of this kind.
constexpr const char* k_removed[] = {
    "CURL_SSL_BACKEND",   "GCONV_PATH",   "GETCONF_DIR", "GNUTLS_SYSTEM_PRIORITY_FILE",
    "HOSTALIASES",        "LOCALDOMAIN",  "LOCPATH",     "MALLOC_TRACE",
    "NIS_PATH",           "NLSPATH",      "RES_OPTIONS", "RESOLV_HOST_CONF",
    "SSLKEYLOGFILE",      "XML_MEM_TRACE", "XML_CATALOG_FILES", "XML_DEBUG_CATALOG",
};

/// Paths of libcrypto: its configuration, which may name code, and directories of code.
constexpr const char* k_judged[] = {"OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_ENGINES", "OPENSSL_MODULES"};

}  // namespace

void take_trusted_environment() {
    if (::geteuid() != 0) {
        return;
    }
    for (const char* name : k_removed) {
        (void)::unsetenv(name);
    }
    for (const char* name : k_judged) {
        const char* path = std::getenv(name);
        if (path != nullptr && *path != '\0') {
            require_trusted(path, fmt::format("path of {}", name));
        }
    }
}

}  // namespace kmm::sys
