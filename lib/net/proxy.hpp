// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "net/url.hpp"

namespace kmm::net {

/// The proxy that the environment wants for `url`, as its address is written there, "" for none: as curl reads
/// http_proxy, https_proxy, all_proxy and no_proxy (its manual, "Environment"), whose entries, separated by commas or
/// blanks, are *, hosts with all below them, addresses and networks (10.0.0.0/8), and as the tools written in Go have
/// it also a host or address with a port, and *.DOMAIN for all below a domain. A variable that is empty is as one that
/// is absent.
[[nodiscard]] std::string proxy_of(const Url& url);

/// A proxy's address for messages: HOST:PORT as it is written, never user or password; "(not shown)" where that cannot
/// be told apart.
[[nodiscard]] std::string proxy_name(std::string_view address);

/// True if a "/", "?" or "#" of a user or password ends the host of `address` where that begins: what it would name is
/// a part of them.
[[nodiscard]] bool hides_host(std::string_view address);

/// An unavailable (69) "network" for a proxy's address, of which `what` says what is wrong and nothing else.
[[nodiscard]] Error bad_proxy_address(const std::string& what);

/// True if the proxy at `address` speaks HTTP, so that it may answer a request for an http URL itself; false for SOCKS.
[[nodiscard]] bool is_http_proxy(std::string_view address);

/// The status of a proxy that wants to be told who asks.
inline constexpr int k_proxy_login_wanted = 407;

/// What to say when the proxy called `name` answers `status` where a connection to, or an answer of `target` was
/// expected. An unavailable (69) "network", retryable for the statuses that pass.
[[nodiscard]] Error proxy_refusal(const std::string& name, int status, const std::string& target);

}  // namespace kmm::net
