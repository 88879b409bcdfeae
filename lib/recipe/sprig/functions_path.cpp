// SPDX-License-Identifier: Apache-2.0
// Paths and URLs.
#include <fmt/format.h>

#include "recipe/golib/url.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/sprig/sprig.hpp"

namespace kmm::recipe::tmpl {

namespace {

std::string directory_of(std::string_view path) { return clean_path(path.substr(0, path.rfind('/') + 1)); }

std::string extension_of(std::string_view path) {
    const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
    return dot == std::string_view::npos || (slash != std::string_view::npos && dot < slash)
               ? ""
               : std::string(path.substr(dot));
}

Value path_base(Call&, List& a) { return Value::string(base_path(a[0].text())); }
Value path_clean(Call&, List& a) { return Value::string(clean_path(a[0].text())); }
Value path_dir(Call&, List& a) { return Value::string(directory_of(a[0].text())); }
Value path_ext(Call&, List& a) { return Value::string(extension_of(a[0].text())); }
Value path_is_abs(Call&, List& a) { return Value::boolean(a[0].text().starts_with('/')); }

std::string member_text(const Map& members, std::string_view key) {
    const auto found = members.find(key);
    if (found == members.end()) { return ""; }
    if (!found->second.is_text()) {
        throw Fault{
            fmt::format("unable to parse {} key, must be of type string, but {} found", key, type_name(found->second))};
    }
    return found->second.text();
}

Value url_parsed(Call&, List& a) {
    const Url url = parse_url(a[0].text());
    Map members;
    members["scheme"] = Value::string(url.scheme);
    members["host"] = Value::string(url.host);
    members["hostname"] = Value::string(url.hostname());
    members["path"] = Value::string(url.path);
    members["query"] = Value::string(url.query);
    members["opaque"] = Value::string(url.opaque);
    members["fragment"] = Value::string(url.fragment);
    members["userinfo"] = Value::string(url.userinfo);
    return Value::map(std::move(members));
}

Value url_joined(Call&, List& a) {
    const Map& members = a[0].members();
    Url url;
    url.scheme = member_text(members, "scheme");
    url.host = member_text(members, "host");
    url.path = member_text(members, "path");
    url.query = member_text(members, "query");
    url.opaque = member_text(members, "opaque");
    url.fragment = member_text(members, "fragment");
    const std::string user = member_text(members, "userinfo");
    if (!user.empty()) {
        url.userinfo = parse_url(fmt::format("proto://{}@host", user)).userinfo;
        url.has_userinfo = true;
    }
    return Value::string(url.text());
}

}  // namespace

std::span<const Function> path_functions() {
    static const Function table[] = {
        {"base", "s", false, path_base},     {"osBase", "s", false, path_base},   {"clean", "s", false, path_clean},
        {"osClean", "s", false, path_clean}, {"dir", "s", false, path_dir},       {"osDir", "s", false, path_dir},
        {"ext", "s", false, path_ext},       {"osExt", "s", false, path_ext},     {"isAbs", "s", false, path_is_abs},
        {"osIsAbs", "s", false, path_is_abs}, {"urlParse", "s", false, url_parsed}, {"urlJoin", "m", false, url_joined},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
