// SPDX-License-Identifier: Apache-2.0
// What OpenSSL's words for a fault of TLS mean.
#pragma once

#include <string>
#include <string_view>

namespace kmm::net {

/// What a server says of our certificate; with TLS 1.3 it comes after the handshake, when something is read or written.
[[nodiscard]] bool refuses_certificate(std::string_view reason);

/// True if only a server that speaks TLS, though not as we do, can be the reason: plain HTTP is no way to talk to it.
[[nodiscard]] bool answers_in_tls(std::string_view reason);

/// False if what the other end answered is no TLS at all.
[[nodiscard]] bool speaks_tls(std::string_view reason);

/// What to do about a fault of TLS; never empty.
[[nodiscard]] std::string tls_hint(std::string_view reason);

}  // namespace kmm::net
