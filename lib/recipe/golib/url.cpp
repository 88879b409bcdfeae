// SPDX-License-Identifier: Apache-2.0
#include "recipe/golib/url.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

namespace {

enum class Part { path, host, user, fragment };

bool stays(char c, Part part) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (is_letter(byte) || is_digit(byte))) { return true; }
    switch (part) {
        case Part::host: return std::string_view("-_.~!$&'()*+,;=:[]<>\"").find(c) != std::string_view::npos;
        case Part::path: return std::string_view("-_.~$&+,/:;=@").find(c) != std::string_view::npos;
        case Part::user: return std::string_view("-_.~$&+,;=").find(c) != std::string_view::npos;
        case Part::fragment: return std::string_view("-_.~$&+,/:;=?@!()*").find(c) != std::string_view::npos;
    }
    return false;
}

std::string escaped(std::string_view text, Part part) {
    std::string out;
    for (const char c : text) {
        if (stays(c, part)) {
            out += c;
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const auto byte = base::from_hex(text.substr(i + 1, 2));
        if (!byte || byte->empty()) {
            throw Fault{fmt::format("invalid URL escape {}", quote_text(text.substr(i, 3)))};
        }
        out += static_cast<char>(byte->front());
        i += 2;
    }
    return out;
}

void take_authority(Url& url, std::string_view authority) {
    const std::size_t at = authority.rfind('@');
    if (at != std::string_view::npos) {
        const std::string_view user = authority.substr(0, at);
        const auto wrong = [](char c) {
            const auto byte = static_cast<unsigned char>(c);
            return !(byte < 0x80 && (is_letter(byte) || is_digit(byte))) &&
                   std::string_view("-._:~!$&'()*+,;=%@").find(c) == std::string_view::npos;
        };
        if (std::any_of(user.begin(), user.end(), wrong)) { throw Fault{"net/url: invalid userinfo"}; }
        url.has_userinfo = true;
        const std::size_t colon = user.find(':');
        url.userinfo = escaped(unescaped(user.substr(0, colon)), Part::user);
        if (colon != std::string_view::npos) {
            url.userinfo += ':' + escaped(unescaped(user.substr(colon + 1)), Part::user);
        }
        authority.remove_prefix(at + 1);
    }
    const std::size_t bracket = authority.rfind(']');
    if (authority.starts_with('[') && bracket == std::string_view::npos) { throw Fault{"missing ']' in host"}; }
    const std::size_t colon = authority.rfind(':');
    if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
        const std::string_view port = authority.substr(colon + 1);
        if (!std::all_of(port.begin(), port.end(), [](char c) { return is_digit(static_cast<unsigned char>(c)); })) {
            throw Fault{fmt::format("invalid port {} after host", quote_text(authority.substr(colon)))};
        }
    }
    url.host = unescaped(authority);
    for (const char c : url.host) {
        if (static_cast<unsigned char>(c) < 0x80 && !stays(c, Part::host)) {
            throw Fault{fmt::format("invalid character {} in host name", quote_text(std::string(1, c)))};
        }
    }
}

std::optional<std::size_t> scheme_end(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < 0x80 && is_letter(byte)) { continue; }
        if (is_digit(byte) || text[i] == '+' || text[i] == '-' || text[i] == '.') {
            if (i == 0) { return 0; }
            continue;
        }
        if (text[i] == ':') {
            if (i == 0) { throw Fault{"missing protocol scheme"}; }
            return i;
        }
        return 0;
    }
    return 0;
}

}  // namespace

std::string Url::hostname() const {
    std::string_view name = host;
    const std::size_t colon = name.rfind(':');
    const std::size_t bracket = name.rfind(']');
    if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
        name = name.substr(0, colon);
    }
    if (name.starts_with('[') && name.ends_with(']')) { name = name.substr(1, name.size() - 2); }
    return std::string(name);
}

std::string Url::text() const {
    std::string out;
    if (!scheme.empty()) { out += scheme + ':'; }
    if (!opaque.empty()) {
        out += opaque;
    } else {
        if (!scheme.empty() || !host.empty() || has_userinfo) {
            if (!host.empty() || !path.empty() || has_userinfo) { out += "//"; }
            if (has_userinfo) { out += userinfo + '@'; }
            out += escaped(host, Part::host);
        }
        const std::string shown = raw_path.empty() ? (path == "*" ? "*" : escaped(path, Part::path)) : raw_path;
        if (!shown.empty() && shown[0] != '/' && !host.empty()) { out += '/'; }
        if (out.empty() && shown.substr(0, shown.find('/')).find(':') != std::string::npos) { out += "./"; }
        out += shown;
    }
    if (force_query || !query.empty()) { out += '?' + query; }
    if (!fragment.empty()) { out += '#' + escaped(fragment, Part::fragment); }
    return out;
}

Url parse_url(std::string_view given) {
    Url url;
    const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
    std::string_view text = given;
    const std::size_t hash = text.find('#');
    if (hash != std::string_view::npos) {
        url.fragment = unescaped(text.substr(hash + 1));
        text = text.substr(0, hash);
    }
    if (std::any_of(text.begin(), text.end(), control)) { throw Fault{"net/url: invalid control character in URL"}; }
    if (text == "*") {
        url.path = "*";
        return url;
    }
    const std::size_t end = scheme_end(text).value_or(0);
    if (end > 0) {
        for (const char c : text.substr(0, end)) {
            url.scheme += static_cast<char>(to_lower(static_cast<unsigned char>(c)));
        }
        text.remove_prefix(end + 1);
    }
    if (text.ends_with('?') && std::count(text.begin(), text.end(), '?') == 1) {
        url.force_query = true;
        text.remove_suffix(1);
    } else if (const std::size_t mark = text.find('?'); mark != std::string_view::npos) {
        url.query = text.substr(mark + 1);
        text = text.substr(0, mark);
    }
    if (!text.starts_with('/')) {
        if (!url.scheme.empty()) {
            url.opaque = text;
            return url;
        }
        if (text.substr(0, text.find('/')).find(':') != std::string_view::npos) {
            throw Fault{"first path segment in URL cannot contain colon"};
        }
    }
    if (text.starts_with("//") && (!url.scheme.empty() || !text.starts_with("///"))) {
        text.remove_prefix(2);
        const std::size_t slash = std::min(text.find('/'), text.size());
        take_authority(url, text.substr(0, slash));
        text.remove_prefix(slash);
    }
    url.path = unescaped(text);
    if (escaped(url.path, Part::path) != text) { url.raw_path = text; }
    return url;
}

namespace {

std::string joined_path(std::string_view base, std::string_view reference) {
    std::string whole(reference);
    if (reference.empty()) { whole = base; }
    if (!reference.empty() && reference[0] != '/') {
        whole = std::string(base.substr(0, base.rfind('/') + 1)) + std::string(reference);
    }
    if (whole.empty()) { return ""; }
    std::string out;
    for (std::size_t begin = 0; begin <= whole.size();) {
        const std::size_t end = std::min(whole.find('/', begin), whole.size());
        const std::string piece = whole.substr(begin, end - begin);
        const bool is_last = end == whole.size();
        if (piece == "..") { out.erase(std::min(out.rfind('/'), out.size())); }
        if (piece == "." || piece == "..") {
            if (is_last) { out += '/'; }
        } else if (begin > 0 || !piece.empty()) {
            out += '/' + piece;
        }
        begin = end + 1;
    }
    return out;
}

}  // namespace

Url resolve_url(const Url& base, const Url& reference) {
    const auto escaped_path = [](const Url& url) {
        return url.raw_path.empty() ? escaped(url.path, Part::path) : url.raw_path;
    };
    Url url = reference;
    const auto set_path = [&](const std::string& path) {
        url.path = unescaped(path);
        url.raw_path = escaped(url.path, Part::path) == path ? "" : path;
    };
    if (url.scheme.empty()) { url.scheme = base.scheme; }
    if (!reference.scheme.empty() || !reference.host.empty() || reference.has_userinfo) {
        if (reference.opaque.empty()) { set_path(joined_path(escaped_path(reference), "")); }
        return url;
    }
    if (reference.path.empty() && !reference.force_query && reference.query.empty()) {
        url.query = base.query;
        if (reference.fragment.empty()) { url.fragment = base.fragment; }
    }
    if (reference.path.empty() && !base.opaque.empty()) {
        url.opaque = base.opaque;
        return url;
    }
    url.host = base.host;
    url.userinfo = base.userinfo;
    url.has_userinfo = base.has_userinfo;
    set_path(joined_path(escaped_path(base), escaped_path(reference)));
    return url;
}

std::string clean_path(std::string_view path) {
    const bool rooted = path.starts_with('/');
    std::vector<std::string_view> kept;
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t slash = std::min(path.find('/', at), path.size());
        const std::string_view piece = path.substr(at, slash - at);
        at = slash + 1;
        if (piece.empty() || piece == ".") { continue; }
        if (piece == ".." && !kept.empty() && kept.back() != "..") {
            kept.pop_back();
        } else if (piece != ".." || !rooted) {
            kept.push_back(piece);
        }
    }
    std::string out = rooted ? "/" : "";
    for (std::size_t i = 0; i < kept.size(); ++i) { out += (i == 0 ? "" : "/") + std::string(kept[i]); }
    return out.empty() ? "." : out;
}

std::string base_path(std::string_view path) {
    if (path.empty()) { return "."; }
    while (path.size() > 1 && path.ends_with('/')) { path.remove_suffix(1); }
    if (path == "/") { return "/"; }
    return std::string(path.substr(path.rfind('/') + 1));
}

std::string query_escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x80 && (is_letter(byte) || is_digit(byte))) || c == '-' || c == '_' || c == '.' || c == '~') {
            out += c;
        } else if (c == ' ') {
            out += '+';
        } else {
            out += fmt::format("%{:02X}", byte);
        }
    }
    return out;
}

}  // namespace kmm::recipe::tmpl
