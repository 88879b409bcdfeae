// SPDX-License-Identifier: Apache-2.0
// The few URL operations that a registry client needs: split, join, compare origins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kmm::net {

/// An absolute http or https URL.
struct Url {
    std::string scheme;     ///< "http" or "https"
    std::string user_info;  ///< "" if there is none
    std::string host;       ///< lower case; IPv6 without brackets
    unsigned port = 0;      ///< the scheme's default if none was written
    std::string path;       ///< starts with "/"
    std::string query;      ///< without the "?"

    [[nodiscard]] std::string to_string() const;
    /// Same scheme, host and port: the boundary that credentials do not cross.
    [[nodiscard]] bool same_origin(const Url& other) const;
};

/// nullopt for anything but an absolute http(s) URL of printable ASCII with a host; the fragment is dropped.
[[nodiscard]] std::optional<Url> parse_url(std::string_view text);

/// Resolves a Location header against the URL it came from (RFC 3986 section 5.2, without dot-segment removal); blanks
/// and bytes beyond ASCII are percent-encoded, as Go's clients do. nullopt if the result is not an http(s) URL.
[[nodiscard]] std::optional<Url> resolve_url(const Url& base, std::string_view reference);

/// Percent-encodes everything but RFC 3986 unreserved characters: for values of a query.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace kmm::net
