// SPDX-License-Identifier: Apache-2.0
// Certificates of one registry, laid out as Docker and Podman have them: DIR/HOST[:PORT]/*.crt, *.cert with *.key; and
// as containerd may call the directory: DIR/HOST_PORT_.
#pragma once

#include <string>
#include <vector>

#include "net/http.hpp"

namespace kmm::registry {

/// Where Podman, Docker and containerd look, in that order, below `etc`.
[[nodiscard]] std::vector<std::string> certificate_directories(const std::string& etc);

/// Adds what the first of `directories` that has an entry for `registry` ("HOST[:PORT]") holds: every *.crt as an
/// authority, the first *.cert with its *.key as our own certificate. Errors: not_found "ca-file" for a *.cert without
/// *.key; io.
void add_certificates(net::TlsSettings& tls, const std::vector<std::string>& directories, const std::string& registry);

}  // namespace kmm::registry
