// SPDX-License-Identifier: Apache-2.0
#include "net/tls_words.hpp"

#include <algorithm>
#include <iterator>

namespace kmm::net {

bool refuses_certificate(std::string_view reason) {
    const auto says = [&](std::string_view text) { return reason.find(text) != std::string_view::npos; };
    return says(" alert ") && (says("certificate") || says("unknown ca") || says("access denied"));
}

bool answers_in_tls(std::string_view reason) {
    constexpr std::string_view words[] = {" alert ",
                                          "unsupported protocol",
                                          "key too small",
                                          "legacy renegotiation",
                                          "wrong signature type",
                                          "client certificate",
                                          "private key"};
    return std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view text) { return reason.find(text) != std::string_view::npos; });
}

bool speaks_tls(std::string_view reason) {
    return reason.find("wrong version number") == std::string_view::npos &&
           reason.find("packet length too long") == std::string_view::npos;
}

std::string tls_hint(std::string_view reason) {
    const auto says = [&](std::string_view text) { return reason.find(text) != std::string_view::npos; };
    if (!speaks_tls(reason)) {
        return "the server does not speak TLS on this port; --insecure allows plain HTTP";
    }
    if (says("alert protocol version") || says("unsupported protocol")) {
        return "the server speaks no TLS 1.2 or newer: update it";
    }
    if (refuses_certificate(reason)) {
        return "the server wants a certificate of ours that it knows: *.cert and *.key below certs.d/HOST";
    }
    if (says("client certificate") || says("private key")) {
        return "our own certificate and its key: expected PEM that belongs together, the key without a passphrase";
    }
    if (says("has expired") || says("not yet valid")) {
        return "renew the server's certificate, or correct this machine's clock; --ca-file does not help here";
    }
    if (says("subject name") || says("does not match target")) {
        return "use a name that the server's certificate holds; --ca-file does not help here";
    }
    return "--ca-file FILE adds the authority that signed the certificate";
}

}  // namespace kmm::net
