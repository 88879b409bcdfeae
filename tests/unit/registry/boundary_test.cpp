// SPDX-License-Identifier: Apache-2.0
// How far inwards a request may go.
#include <doctest/doctest.h>

#include "net/url.hpp"
#include "registry/client/auth.hpp"

using namespace kmm;
using net::AddressScope;

TEST_CASE("no request goes further inwards than the registry's first address, also none to its own name") {
    const auto of = [](const char* url, const registry::Boundary& boundary) {
        return registry::scope_max_for(*net::parse_url(url), boundary);
    };
    const registry::Boundary unknown{"registry.example.com", AddressScope::global, false};
    CHECK(of("https://registry.example.com/", unknown) == AddressScope::loopback);  // where it is, is not known yet
    CHECK(of("https://auth.example.com/", unknown) == AddressScope::global);
    for (const auto scope : {AddressScope::global, AddressScope::site, AddressScope::loopback}) {
        const registry::Boundary reached{"registry.example.com", scope, false, true};
        CHECK(of("https://registry.example.com/", reached) == scope);
        CHECK(of("https://auth.example.com/", reached) == scope);
    }
    const registry::Boundary named{"169.254.1.1", AddressScope::link_local, false, true};
    CHECK(of("https://169.254.1.1/", named) == AddressScope::link_local);
    CHECK(of("https://auth.example.com/", named) == AddressScope::loopback);
}
