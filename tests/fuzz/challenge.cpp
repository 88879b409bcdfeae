// SPDX-License-Identifier: Apache-2.0
// WWW-Authenticate headers, the token servers they name, and where redirects may lead.
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fuzz/target.hpp"
#include "registry/client/auth.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const std::string_view header = fuzz::text_of(data, size);
    const registry::Boundary boundary{"reg.example.com", net::AddressScope::global, false};
    for (const auto& challenge : registry::parse_challenges(header)) {
        fuzz::require(!challenge.scheme.empty() && challenge.scheme == base::to_lower(challenge.scheme),
                      "a scheme is a lower-case word");
        for (const auto& [name, value] : challenge.params) {
            fuzz::require(name == base::to_lower(name) && value.size() <= size, "a parameter is a part of the header");
            try {
                const net::Url url = registry::check_realm(value, boundary);
                fuzz::require(url.scheme == "https" && url.user_info.empty(), "tokens are only fetched by https");
                const auto scope = net::literal_scope(url.host);
                fuzz::require(!scope || *scope == net::AddressScope::global, "tokens are not fetched from inside");
            } catch (const Error& error) {
                fuzz::require(error.code() == "registry-auth", "a bad realm is a fault of the login");
            }
        }
    }
    if (const auto url = net::parse_url(header)) {
        const auto again = net::parse_url(url->to_string());
        fuzz::require(again && again->to_string() == url->to_string(), "a URL is read as it is written");
        fuzz::require(net::redact_url(header).find('\n') == std::string::npos, "a URL is shown on one line");
    }
    return 0;
}
