// SPDX-License-Identifier: Apache-2.0
// URLs and paths as Go's packages net/url and path take them apart.
#pragma once

#include <string>
#include <string_view>

namespace kmm::recipe::tmpl {

struct Url {
    std::string scheme, opaque, userinfo, host, path, query, fragment;
    bool has_userinfo = false;
    bool force_query = false;
    std::string raw_path;  ///< as it was written, if that is not how `path` would be written
    /// Without the port, and without the brackets of an IPv6 address.
    [[nodiscard]] std::string hostname() const;
    /// url.URL.String().
    [[nodiscard]] std::string text() const;
};

/// url.Parse. Throws Fault.
[[nodiscard]] Url parse_url(std::string_view text);
/// url.URL.ResolveReference.
[[nodiscard]] Url resolve_url(const Url& base, const Url& reference);
/// path.Clean.
[[nodiscard]] std::string clean_path(std::string_view path);
/// path.Base.
[[nodiscard]] std::string base_path(std::string_view path);
/// url.QueryEscape.
[[nodiscard]] std::string query_escaped(std::string_view text);

}  // namespace kmm::recipe::tmpl
