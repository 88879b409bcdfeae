// SPDX-License-Identifier: Apache-2.0
#include "net/ca_bundle.hpp"

#include <algorithm>
#include <iterator>

namespace kmm::net {

std::string system_ca_bundle(const std::function<bool(const std::string&)>& is_readable) {
    static const std::string places[] = {
        "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Alpine, Flatcar
        "/etc/pki/tls/certs/ca-bundle.crt",                   // RHEL and its kin
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // the same, newer
        "/etc/ssl/ca-bundle.pem",                             // SUSE
        "/etc/ssl/cert.pem",                                  // Alpine
    };
    const auto place = std::find_if(std::begin(places), std::end(places), is_readable);
    return place == std::end(places) ? std::string() : *place;
}

}  // namespace kmm::net
