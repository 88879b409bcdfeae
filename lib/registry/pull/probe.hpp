// SPDX-License-Identifier: Apache-2.0
// Is an image there, for this platform, and which digest does its name stand for? Nothing but manifests is fetched.
#pragma once

#include <string>
#include <vector>

#include "net/http.hpp"
#include "registry/client/request.hpp"
#include "sys/clock.hpp"

namespace kmm::registry {

struct Probe {
    std::string reference;     ///< normalised
    std::string digest;  ///< of what the reference names: the index if there is one, else the manifest; "" for dir:
    std::string manifest;      ///< digest of the platform's manifest
    std::uint64_t bytes = 0;   ///< compressed layers together
};

/// Walks from the reference to the platform's manifest and checks it. Errors: as pull, up to the layers.
[[nodiscard]] Probe probe(const PullRequest& request, net::HttpClient& http, sys::Clock& clock);

}  // namespace kmm::registry
