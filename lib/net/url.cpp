// SPDX-License-Identifier: Apache-2.0
#include "net/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/text.hpp"
#include "net/http.hpp"

namespace kmm::net {

namespace {

unsigned default_port(std::string_view scheme) { return scheme == "https" ? 443U : 80U; }

bool is_unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

}  // namespace

std::string Url::to_string() const {
    const bool v6 = host.find(':') != std::string::npos;
    std::string text = scheme + "://";
    if (!user_info.empty()) {
        text += user_info + "@";
    }
    text += v6 ? "[" + host + "]" : host;
    if (port != default_port(scheme)) {
        text += fmt::format(":{}", port);
    }
    text += path;
    if (!query.empty()) {
        text += "?" + query;
    }
    return text;
}

bool Url::same_origin(const Url& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
}

std::optional<Url> parse_url(std::string_view text) {
    if (!std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F && c != '\\'; })) {
        return std::nullopt;
    }
    text = text.substr(0, text.find('#'));
    const std::size_t colon = text.find("://");
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    Url url;
    url.scheme = base::to_lower(text.substr(0, colon));
    if (url.scheme != "http" && url.scheme != "https") {
        return std::nullopt;
    }
    text.remove_prefix(colon + 3);
    const std::size_t authority_end = std::min(text.find_first_of("/?"), text.size());
    std::string_view authority = text.substr(0, authority_end);
    std::string_view rest = text.substr(authority_end);
    if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
        url.user_info = std::string(authority.substr(0, at));
        authority.remove_prefix(at + 1);
    }
    std::string_view port;
    if (authority.starts_with('[')) {
        const std::size_t close = authority.find(']');
        if (close == std::string_view::npos) {
            return std::nullopt;
        }
        url.host = base::to_lower(authority.substr(1, close - 1));
        port = authority.substr(close + 1);
        if (url.host.find(':') == std::string::npos) {
            return std::nullopt;
        }
    } else {
        const std::size_t split = std::min(authority.find(':'), authority.size());
        url.host = base::to_lower(authority.substr(0, split));
        port = authority.substr(split);
        if (url.host.find_first_of("%[]") != std::string::npos) {
            return std::nullopt;
        }
    }
    if (url.host.empty()) {
        return std::nullopt;
    }
    url.port = default_port(url.scheme);
    if (port.size() > 1 && port.front() == ':') {
        url.port = 0;
        for (const char c : port.substr(1)) {
            if (c < '0' || c > '9' || url.port > 6553) {
                return std::nullopt;
            }
            url.port = url.port * 10 + static_cast<unsigned>(c - '0');
        }
        if (url.port == 0 || url.port > 65535) {
            return std::nullopt;
        }
    } else if (!port.empty() && port != ":") {
        return std::nullopt;
    }
    const std::size_t question = rest.find('?');
    url.path = std::string(rest.substr(0, question));
    if (url.path.empty()) {
        url.path = "/";
    }
    if (question != std::string_view::npos) {
        url.query = std::string(rest.substr(question + 1));
    }
    return url;
}

std::optional<Url> resolve_url(const Url& base, std::string_view reference) {
    // Storage behind registries writes names of files with blanks and letters of other alphabets into it as they are.
    std::string encoded;
    for (const char& c : reference.substr(0, reference.find('#'))) {
        const bool is_plain = c != ' ' && static_cast<unsigned char>(c) < 0x80;
        encoded += is_plain ? std::string(1, c) : percent_encode({&c, 1});
    }
    reference = encoded;
    const std::size_t colon = reference.find(':');
    if (colon != std::string_view::npos && colon < reference.find_first_of("/?")) {
        return parse_url(reference);
    }
    if (reference.starts_with("//")) {
        return parse_url(base.scheme + ":" + std::string(reference));
    }
    Url origin = base;
    origin.user_info.clear();
    origin.query.clear();
    std::string path = base.path;
    if (reference.starts_with('/')) {
        path.clear();
    } else if (!reference.empty() && reference.front() != '?') {
        path = path.substr(0, path.rfind('/') + 1);
    }
    origin.path.clear();
    return parse_url(origin.to_string() + path + std::string(reference));
}

std::string percent_encode(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (is_unreserved(c)) {
            result += c;
        } else {
            result += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        }
    }
    return result;
}

std::string redact_url(std::string_view url) {
    std::string result(url.substr(0, url.find('#')));
    const std::size_t question = result.find('?');
    const bool has_query = question != std::string::npos;
    result = result.substr(0, question);
    const std::size_t start = result.find("://");
    const std::size_t authority = start == std::string::npos ? 0 : start + 3;
    const std::size_t end = std::min(result.find('/', authority), result.size());
    const std::size_t at = result.rfind('@', end);
    if (at != std::string::npos && at >= authority && at < end) {
        result.erase(authority, at - authority + 1);
    }
    return base::escape(result) + (has_query ? "?…" : "");
}

}  // namespace kmm::net
