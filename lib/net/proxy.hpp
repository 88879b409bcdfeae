// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/url.hpp"

namespace kmm::net {

/// True if the environment wants a proxy for `url`: as curl reads http_proxy, https_proxy, all_proxy and no_proxy (its manual, "Environment"),
/// whose entries, separated by commas or blanks, are *, hosts with all below them, addresses and networks (10.0.0.0/8), and as the tools
/// written in Go have it also a host or address with a port.
[[nodiscard]] bool goes_through_proxy(const Url& url);

}  // namespace kmm::net
