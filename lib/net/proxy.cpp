// SPDX-License-Identifier: Apache-2.0
#include "net/proxy.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "net/retry.hpp"

namespace kmm::net {

namespace {

/// An empty variable is as one that is absent, for curl and for programs written in Go.
std::string variable(const char* lower, const char* upper) {
    for (const char* name : {lower, upper}) {
        const char* value = name == nullptr ? nullptr : std::getenv(name);
        if (value != nullptr && *value != '\0') {
            return value;
        }
    }
    return {};
}

/// The bytes of an IPv4 or IPv6 address, as text: 4 or 16; none for anything else.
std::string address_bytes(std::string_view text) {
    std::array<char, 16> bytes{};
    const std::string name(text);
    if (::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1) {
        return {bytes.data(), 4};
    }
    return ::inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1 ? std::string(bytes.data(), bytes.size())
                                                                  : std::string();
}

/// True if `host` is an address in `network`, which is written as 10.0.0.0/8.
bool is_in_network(std::string_view host, std::string_view network) {
    const std::size_t slash = network.find('/');
    const std::string first = address_bytes(network.substr(0, slash));
    const std::string address = address_bytes(host);
    const auto bits = base::parse_number<unsigned>(network.substr(slash + 1));
    if (!bits || *bits > first.size() * 8 || address.empty() || address.size() != first.size()) {
        return false;
    }
    for (unsigned bit = 0; bit < *bits; ++bit) {
        const unsigned mask = 0x80U >> (bit % 8);
        if (((static_cast<unsigned char>(address[bit / 8]) ^ static_cast<unsigned char>(first[bit / 8])) & mask) != 0) {
            return false;
        }
    }
    return true;
}

/// True if the entry of no_proxy means the host of `url`, and its port if it names one.
bool is_meant(const Url& url, std::string_view entry) {
    if (entry == "*") {
        return true;
    }
    if (entry.find('/') != std::string_view::npos) {
        return is_in_network(url.host, entry);
    }
    const bool bracketed = entry.starts_with('[');
    const std::size_t colon = entry.rfind(':');
    const bool has_port =
        colon != std::string_view::npos && (bracketed ? entry[colon - 1] == ']' : entry.find(':') == colon);
    if (has_port) {
        if (base::parse_number<unsigned>(entry.substr(colon + 1)) != url.port) {
            return false;
        }
        entry = entry.substr(0, colon);
    }
    if (bracketed && entry.ends_with(']')) {
        entry = entry.substr(1, entry.size() - 2);
    }
    const bool only_below = entry.starts_with("*.");  // as programs written in Go read it: not the domain itself
    if (only_below || entry.starts_with('.')) {
        entry.remove_prefix(only_below ? 2 : 1);
    }
    if (entry.empty()) {
        return false;
    }
    if (const std::string address = address_bytes(url.host); !address.empty()) {
        return address == address_bytes(entry) && !only_below;
    }
    return (url.host == entry && !only_below) || url.host.ends_with("." + std::string(entry));
}

}  // namespace

std::string proxy_of(const Url& url) {
    std::string proxy =
        url.scheme == "https" ? variable("https_proxy", "HTTPS_PROXY") : variable("http_proxy", nullptr);
    if (proxy.empty()) {
        proxy = variable("all_proxy", "ALL_PROXY");
    }
    if (proxy.empty()) {
        return proxy;
    }
    const std::string exceptions = base::to_lower(variable("no_proxy", "NO_PROXY"));
    constexpr std::string_view between = ", \t";
    for (std::size_t at = 0; at < exceptions.size();) {
        const std::size_t end = std::min(exceptions.find_first_of(between, at), exceptions.size());
        if (end > at && is_meant(url, std::string_view(exceptions).substr(at, end - at))) {
            return {};
        }
        at = end + 1;
    }
    return proxy;
}

std::string proxy_name(std::string_view address) {
    if (const std::size_t scheme = address.find("://"); scheme != std::string_view::npos) {
        address.remove_prefix(scheme + 3);
    }
    if (const std::size_t user = address.rfind('@'); user != std::string_view::npos) {
        address.remove_prefix(user + 1);
    }
    address = address.substr(0, address.find('/'));
    const bool is_plain = std::all_of(address.begin(), address.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
               c == '_' || c == ':' || c == '[' || c == ']';
    });
    return is_plain && !address.empty() ? std::string(address) : "(not shown)";
}

bool hides_host(std::string_view address) {
    const std::size_t scheme = address.find("://");
    address.remove_prefix(scheme == std::string_view::npos ? 0 : scheme + 3);
    const std::size_t end = address.find_first_of("/?#");
    return end != std::string_view::npos && address.find('@', end) != std::string_view::npos;
}

Error bad_proxy_address(const std::string& what) {
    return Error(Exit::unavailable, "network", "the proxy's address cannot be used: " + what)
        .hint(
            "http_proxy, https_proxy or all_proxy: expected http://HOST:PORT; in USER:PASSWORD@ before it / is "
            "written %2F, ? %3F, # %23 and @ %40");
}

bool is_http_proxy(std::string_view address) { return !base::to_lower(address.substr(0, 5)).starts_with("socks"); }

Error proxy_refusal(const std::string& name, int status, const std::string& target) {
    Error error(Exit::unavailable, "network",
                fmt::format("the proxy {} answered {} where {} was expected", name, status, target));
    error.hint(
        status == k_proxy_login_wanted
            ? "it wants a login: http://USER:PASSWORD@HOST:PORT as the proxy's address; no_proxy=HOST goes without it"
            : "no_proxy=HOST goes without the proxy, if that host is reached directly");
    return is_retryable_status(status) ? std::move(error).retryable() : std::move(error);
}

}  // namespace kmm::net
