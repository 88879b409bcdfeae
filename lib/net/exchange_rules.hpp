// SPDX-License-Identifier: Apache-2.0
// What an exchange may reach, and the errors of that, without a word of the library that carries it out.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "net/http.hpp"
#include "net/url.hpp"

namespace kmm::net {

/// "address-refused" (77): `address` is further inwards than the exchange with `url` may go.
[[nodiscard]] Error address_refused(const std::string& address, const std::string& url);

/// Through a proxy: refuses a name that leads further inwards than it may, as far as this machine can tell. Errors:
/// address_refused().
void check_name(const Request& request, const Url& url);

/// Which proxy a request goes through, and what follows from it.
struct Way {
    std::string proxy{};         ///< its address, "" without one; may hold a password
    std::string answerer{};      ///< Response::proxy
    bool check_address = false;  ///< of the peer
};

/// Errors: those of a proxy address that cannot be used; of a host that the request must not name.
[[nodiscard]] Way way_of(const Request& request, const Url& url);

/// "host:port" as a Host header or CURLOPT_CONNECT_TO has it.
[[nodiscard]] std::string host_and_port(const Url& url);

/// True of a fault in the proxy's address: libcurl repeats the address, which may hold a password.
[[nodiscard]] bool quotes_proxy(const std::string& reason);

/// The header lines of the request, with `host` for that of its URL unless it is "". Errors: data "bad-url" for one
/// with a line break.
[[nodiscard]] std::vector<std::string> header_lines(const Request& request, const std::string& host);

}  // namespace kmm::net
