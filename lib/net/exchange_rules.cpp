// SPDX-License-Identifier: Apache-2.0
#include "net/exchange_rules.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "net/address.hpp"
#include "net/proxy.hpp"

namespace kmm::net {

Error address_refused(const std::string& address, const std::string& url) {
    return Error(Exit::no_permission, "address-refused",
                 fmt::format("expected an address on the same side of the network as the registry, found {}", address))
        .detail("url", redact_url(url));
}

void check_name(const Request& request, const Url& url) {
    const auto target = look_up(url.host, Pick::least_public);
    if (!target || target->scope <= request.scope_max) {
        return;
    }
    const auto origin = look_up(request.referred_by, Pick::most_public);
    if (!origin || origin->scope < target->scope) {
        throw address_refused(target->address, request.url);
    }
}

Way way_of(const Request& request, const Url& url) {
    Way way{request.proxy};
    if (request.proxy.empty() && request.proxy_rule == Request::ProxyRule::variables) {
        way.proxy = proxy_of(url);
    }
    const bool is_limited = request.scope_max != AddressScope::link_local, is_proxied = !way.proxy.empty();
    if (hides_host(way.proxy)) {
        throw bad_proxy_address("a character of user or password ends it early (not shown)")
            .detail("url", redact_url(request.url));
    }
    if (is_proxied && url.scheme == "http" && is_http_proxy(way.proxy)) {
        way.answerer = proxy_name(way.proxy);
    }
    way.check_address = is_limited && !is_proxied;
    if (is_limited && is_proxied && !request.referred_by.empty()) {
        check_name(request, url);
    }
    return way;
}

std::string host_and_port(const Url& url) {
    const bool numeric_v6 = url.host.find(':') != std::string::npos;
    return fmt::format("{}:{}", numeric_v6 ? "[" + url.host + "]" : url.host, url.port);
}

bool quotes_proxy(const std::string& reason) {
    return reason.find("proxy") < reason.find('\'') && reason.find('\'') != std::string::npos;
}

std::vector<std::string> header_lines(const Request& request, const std::string& host) {
    std::vector<std::string> lines;
    for (const auto& [name, value] : request.headers) {
        if ((name + value).find_first_of("\r\n") != std::string::npos || value.find('\0') != std::string::npos) {
            throw Error(Exit::data, "bad-url", "expected a header without line breaks: " + base::escape(name));
        }
        lines.push_back(name + ": " + value);
    }
    if (!host.empty()) {
        lines.push_back("Host: " + host);
    }
    if (request.encoding != Encoding::gzip) {
        lines.emplace_back("Accept-Encoding: identity");
    }
    lines.emplace_back("Expect:");
    return lines;
}

}  // namespace kmm::net
