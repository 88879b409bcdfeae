// SPDX-License-Identifier: Apache-2.0
#include "registry/client/auth.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>

#include "base/error.hpp"
#include "base/text.hpp"
#include "net/retry.hpp"
#include "value/reader.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_token_body_max = 64U << 10U;
constexpr std::size_t k_realm_max = 4096;
constexpr std::size_t k_scope_max = 512;
constexpr std::size_t k_scopes_max = 4;
constexpr int k_hops_max = 10;

constexpr const char* k_whose_realm =
    "the registry itself names that address (realm): correct it in the registry's settings";

constexpr const char* k_not_refused =
    "the credentials were not refused: see what answers in the place of the token server, such as a proxy or a login "
    "page";

Error auth_error(std::string message) { return Error(Exit::no_permission, "registry-auth", std::move(message)); }

bool is_token_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// Cursor over a WWW-Authenticate value.
struct Scanner {
    std::string_view text;
    std::size_t at = 0;

    void skip(std::string_view characters) {
        while (at < text.size() && characters.find(text[at]) != std::string_view::npos) {
            ++at;
        }
    }
    std::string token() {
        const std::size_t start = at;
        while (at < text.size() && is_token_char(text[at])) {
            ++at;
        }
        return std::string(text.substr(start, at - start));
    }
    std::string value() {
        if (at >= text.size() || text[at] != '"') {
            const std::size_t start = at;
            while (at < text.size() && text[at] != ',' && text[at] != ' ') {
                ++at;
            }
            return std::string(text.substr(start, at - start));
        }
        std::string result;
        for (++at; at < text.size() && text[at] != '"'; ++at) {
            if (text[at] == '\\' && at + 1 < text.size()) {
                ++at;
            }
            result += text[at];
        }
        ++at;
        return result;
    }
};

std::string basic(const Credential& credential) {
    return "Basic " + base::to_base64(credential.user + ":" + credential.password);
}

/// True for what a header can carry.
bool is_token(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

bool names_realm(const Challenge& challenge) {
    const auto realm = challenge.params.find("realm");
    return realm != challenge.params.end() && !realm->second.empty();
}

/// The repositories that a challenge names in its scope, with the actions of `own`: what is wanted of them does not
/// change.
std::vector<std::string> scopes_in(const Challenge& challenge, const std::string& own) {
    constexpr std::string_view prefix = "repository:";
    std::vector<std::string> result;
    const auto scope = challenge.params.find("scope");
    if (scope == challenge.params.end()) {
        return result;
    }
    for (const std::string_view one : base::split(scope->second, ' ')) {
        const std::size_t end = one.rfind(':');
        if (one.size() > k_scope_max || !is_token(one) || !one.starts_with(prefix) || end <= prefix.size()) {
            continue;
        }
        result.push_back(std::string(one.substr(0, end)) + own.substr(own.rfind(':')));
    }
    return result;
}

std::vector<std::string> components(std::string_view text, char separator) {
    std::vector<std::string> result;
    for (const std::string_view piece : base::split(text, separator)) {
        result.emplace_back(piece);
    }
    return result;
}

/// Host patterns of the kubelet: wildcards of fnmatch(3) within a label; a port in the key must be equal.
bool host_matches(std::string_view pattern, std::string_view host) {
    if (pattern == host) {
        return true;
    }
    if (pattern.find_first_of("*?[") == std::string_view::npos) {
        return false;
    }
    const std::size_t colon = host.rfind(':');
    const std::size_t pattern_colon = pattern.rfind(':');
    const auto port = [](std::string_view text, std::size_t at) {
        return at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
    };
    if (port(pattern, pattern_colon) != port(host, colon)) {
        return false;
    }
    const auto want = components(pattern.substr(0, pattern_colon), '.');
    const auto have = components(host.substr(0, colon), '.');
    return want.size() == have.size() && std::equal(want.begin(), want.end(), have.begin(), [](auto& w, auto& h) {
               return ::fnmatch(w.c_str(), h.c_str(), 0) == 0;
           });
}

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
    std::vector<Challenge> result;
    Scanner scan{header};
    while (scan.at < header.size()) {
        scan.skip(" \t,");
        const std::size_t before = scan.at;
        std::string name = base::to_lower(scan.token());
        scan.skip(" \t");
        if (name.empty()) {
            scan.at = std::max(scan.at, before + 1);
            continue;
        }
        if (scan.at < header.size() && header[scan.at] == '=' && !result.empty()) {
            ++scan.at;
            scan.skip(" \t");
            result.back().params.emplace(std::move(name), scan.value());
        } else {
            Challenge challenge;
            challenge.scheme = std::move(name);
            result.push_back(std::move(challenge));
        }
    }
    return result;
}

std::vector<Credential> matching_credentials(const std::vector<Credential>& all, const image::Reference& reference) {
    const std::string name = reference.name();
    std::vector<Credential> result;
    for (const Credential& credential : all) {
        const std::size_t slash = credential.key.find('/');
        const std::string_view host = std::string_view(credential.key).substr(0, slash);
        if (!host_matches(host, reference.registry) && !(credential.key.empty() && !credential.helper.empty())) {
            continue;
        }
        if (slash != std::string::npos) {
            const std::string path = credential.key.substr(slash + 1);
            if (path != reference.repository && !reference.repository.starts_with(path + "/")) {
                continue;
            }
        }
        result.push_back(credential);
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Credential& a, const Credential& b) { return a.key.size() > b.key.size(); });
    return result;
}

net::Url check_realm(const std::string& realm, const Boundary& boundary) {
    const auto url = realm.size() <= k_realm_max ? net::parse_url(realm) : std::nullopt;
    const std::string shown = net::redact_url(std::string_view(realm).substr(0, 200));
    if (!url || !url->user_info.empty()) {
        throw auth_error(fmt::format("expected an https URL as the token server, found \"{}\"", shown))
            .hint(std::string(k_whose_realm) + (url ? "" : ", with https:// and its host"));
    }
    if (url->scheme != "https" && !boundary.insecure) {
        throw auth_error(fmt::format("expected the token server on https, found \"{}\"", shown))
            .hint("credentials are never sent in the clear; --insecure allows it for a registry on a trusted network");
    }
    const auto scope = net::literal_scope(url->host);
    if (scope && *scope != net::AddressScope::global && url->host != boundary.host) {
        throw auth_error(fmt::format("expected a public token server or one on the registry's host {}, found the {} "
                                     "address \"{}\"",
                                     boundary.host, net::to_string(*scope), shown))
            .hint(k_whose_realm);
    }
    return *url;
}

void check_redirect(const net::Url& from, const net::Url& to, const Boundary& boundary) {
    const std::string shown = net::redact_url(to.to_string());
    const auto refuse = [&](const std::string& what) {
        return Error(Exit::unavailable, "redirect-refused", what + ", found a redirect to \"" + shown + "\"");
    };
    if (!to.user_info.empty()) {
        throw refuse("expected a location without user name");
    }
    if (from.scheme == "https" && to.scheme != "https") {
        throw refuse("expected to stay on https");
    }
    const auto scope = net::literal_scope(to.host);
    if (scope && *scope != net::AddressScope::global && to.host != boundary.host) {
        throw refuse(fmt::format("expected a public location or one on the registry's host {}", boundary.host));
    }
}

net::AddressScope scope_max_for(const net::Url& url, const Boundary& boundary) {
    if (url.host == boundary.host) {
        return boundary.reached ? boundary.scope : net::AddressScope::loopback;
    }
    return std::min(boundary.scope, net::AddressScope::loopback);
}

Authenticator::Authenticator(const image::Reference& reference, const PullRequest& request,
                             std::vector<std::string> scopes)
    : reference_(reference),
      scopes_(std::move(scopes)),
      tls_(request.tls),
      candidates_(matching_credentials(request.credentials, reference)),
      skipped_(base::join(request.skipped_secrets, "; ")) {
    const auto first =
        std::find_if(candidates_.begin(), candidates_.end(), [](const Credential& one) { return !one.helper.empty(); });
    if (first != candidates_.end()) {
        helper_ = first->helper;
        std::erase_if(candidates_, [](const Credential& one) { return !one.helper.empty(); });
    }
}

std::string Authenticator::tried() const {
    if (found_no_token_server()) {
        return absent_;
    }
    const std::string more =
        helper_.empty()
            ? ""
            : fmt::format("; the helper {} was not asked: no program is run for credentials", base::escape(helper_));
    return refused() + more;
}

Caller Authenticator::caller() const noexcept {
    if (next_ > candidates_.size()) {
        return Caller::nobody;
    }
    return next_ == 0 ? Caller::not_asked : Caller::credential;
}

std::string Authenticator::refused_login() const {
    return caller() == Caller::nobody && !candidates_.empty() ? refused() : std::string();
}

std::string Authenticator::refused() const {
    if (candidates_.empty()) {
        return "no credentials for " + reference_.registry;
    }
    return candidates_.size() == 1 ? "the credentials for " + candidates_.front().key + " were refused"
                                   : fmt::format("{} credentials for {} were refused", candidates_.size(),
                                                 reference_.registry);
}

bool Authenticator::answer(const net::Response& unauthorized, const Boundary& boundary, const Send& send) {
    std::vector<Challenge> challenges;
    for (const std::string& header : unauthorized.all_headers("www-authenticate")) {
        for (Challenge& challenge : parse_challenges(header)) {
            challenges.push_back(std::move(challenge));
        }
    }
    const auto find = [&](std::string_view scheme, bool named) {
        return std::find_if(challenges.begin(), challenges.end(),
                            [&](const Challenge& c) { return c.scheme == scheme && (!named || names_realm(c)); });
    };
    const auto server = find("bearer", true);
    const auto bearer = server != challenges.end() ? server : find("bearer", false);
    const auto plain = find("basic", false);
    if (bearer == challenges.end() && plain == challenges.end()) {
        throw auth_error("the registry asks for a login and offers neither Bearer nor Basic")
            .hint("no credentials were looked at: correct the registry's settings, or those of a proxy before it");
    }
    // One that names no token server is a fault, but not where Basic is a way in.
    const bool asks_for_token =
        bearer != challenges.end() && (server != challenges.end() || plain == challenges.end());
    // A token that served until now may have run out: the same credential once more. One that never did may be too
    // narrow for a registry that knows the repository by another name, as behind a rewriting proxy.
    if (next_ > 0 && asks_for_token && (served_ || widen(*bearer))) {
        --next_;
    } else {
        wider_.clear();
    }
    served_ = false;
    got_token_ = false;
    while (next_ < candidates_.size() || (next_ == candidates_.size() && asks_for_token)) {
        const Credential* credential = next_ < candidates_.size() ? &candidates_[next_] : nullptr;
        if (credential != nullptr && !credential->registry_token.empty()) {
            ++next_;
            if (bearer != challenges.end() && is_token(credential->registry_token)) {
                authorization_ = "Bearer " + credential->registry_token;
                return true;
            }
        } else if (asks_for_token) {
            // May throw, for example because the token server is down: the credential is then still to be tried.
            const auto token = fetch_token(*bearer, credential, boundary, send);
            ++next_;
            if (token) {
                authorization_ = "Bearer " + *token;
                got_token_ = true;
                return true;
            }
            wider_.clear();
        } else {
            ++next_;
            if (!credential->user.empty() || !credential->password.empty()) {
                authorization_ = basic(*credential);
                return true;
            }
        }
    }
    return false;
}

bool Authenticator::widen(const Challenge& challenge) {
    if (!got_token_ || !wider_.empty()) {
        return false;
    }
    for (std::string& scope : scopes_in(challenge, scopes_.front())) {
        const bool known = std::find(scopes_.begin(), scopes_.end(), scope) != scopes_.end() ||
                           std::find(wider_.begin(), wider_.end(), scope) != wider_.end();
        if (!known && wider_.size() < k_scopes_max) {
            wider_.push_back(std::move(scope));
        }
    }
    return !wider_.empty();
}

std::optional<std::string> Authenticator::fetch_token(const Challenge& challenge, const Credential* credential,
                                                      const Boundary& boundary, const Send& send) {
    if (!names_realm(challenge)) {
        throw auth_error("the registry asks for a token and does not name a token server (realm)")
            .hint("no credentials were looked at: correct the registry's settings, or those of a proxy before it");
    }
    net::Url url = check_realm(challenge.params.at("realm"), boundary);
    const auto service = challenge.params.find("service");
    const bool exchange = credential != nullptr && !credential->identity_token.empty();
    // A query names each scope; a form has one list of them, as OAuth 2 allows no member twice (RFC 6749, 3.2 and 3.3).
    const std::string between = exchange ? net::percent_encode(" ") : "&scope=";
    std::string parameters;
    for (const auto* scopes : {&scopes_, &wider_}) {
        for (const std::string& scope : *scopes) {
            parameters += (parameters.empty() ? "scope=" : between) + net::percent_encode(scope);
        }
    }
    if (service != challenge.params.end()) {
        parameters += "&service=" + net::percent_encode(service->second);
    }
    net::Request request;
    request.tls = tls_;
    request.headers.emplace_back("Accept", "application/json");
    if (exchange) {
        request.method = "POST";
        request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
        request.body = "grant_type=refresh_token&client_id=kmm-tools&refresh_token=" +
                       net::percent_encode(credential->identity_token) + "&" + parameters;
    } else {
        url.query += (url.query.empty() ? "" : "&") + parameters;
        if (credential != nullptr) {
            request.headers.emplace_back("Authorization", basic(*credential));
        }
    }
    net::Response response;
    std::string body;
    const net::Url first = url;
    for (int hop = 0;; ++hop) {
        request.url = url.to_string();
        if (url.host != boundary.host) {
            request.tls.client_certificate.clear();
            request.tls.client_key.clear();
            request.tls.pinned_key.clear();
            request.referred_by = boundary.host;
        }
        request.scope_max = scope_max_for(url, boundary);
        body.clear();
        response = send(request, [&](const net::Response&, std::string_view piece) {
            body += piece.substr(0, k_token_body_max + 1 - std::min(k_token_body_max + 1, body.size()));
            return body.size() <= k_token_body_max;
        });
        const auto location = response.header("location");
        if (response.status < 300 || response.status >= 400 || !location) {
            break;
        }
        const auto next = net::resolve_url(url, *location);
        if (!next || hop == k_hops_max || request.method != "GET") {
            throw auth_error("the token server " + first.host + " redirects to nowhere").hint(k_not_refused);
        }
        static_cast<void>(check_realm(next->to_string(), boundary));
        if (!next->same_origin(first)) {
            std::erase_if(request.headers, [](const auto& header) { return header.first == "Authorization"; });
        }
        url = *next;
    }
    if (body.size() > k_token_body_max) {
        throw auth_error("expected at most 64 KiB from the token server " + url.host + ", found more")
            .hint(k_not_refused);
    }
    if (response.status == 404 && !judged_) {
        absent_ = fmt::format("{} answered 404", net::speaker(response, "the token server " + first.host));
        return std::nullopt;
    }
    judged_ = judged_ || response.status < 500;
    if (judged_) {
        absent_.clear();
    }
    if (response.status >= 400 && response.status < 500 && !net::is_retryable_status(response.status)) {
        return std::nullopt;  // also 405: of those who know no refresh tokens
    }
    if (response.status < 200 || response.status > 299) {
        refusal_ = response;
        Error error(
            Exit::unavailable, "token-server",
            fmt::format("{} answered {}", net::speaker(response, "the token server " + url.host), response.status));
        error.cause_http(response.status);
        throw std::move(error).retryable();
    }
    Diagnostics faults;
    const auto documents = value::read_json(body, "token", faults);
    std::string token;
    if (!has_errors(faults) && documents.size() == 1) {
        token = documents.front().root.get_string({"token"});
        if (token.empty()) {
            token = documents.front().root.get_string({"access_token"});
        }
    }
    if (!is_token(token)) {
        const std::string coding = base::to_lower(response.header("content-encoding").value_or(""));
        const std::string_view text = base::trim(body);
        const std::string found = !coding.empty() && coding != "identity"
                                      ? fmt::format("the content coding \"{}\"", base::escape(coding.substr(0, 40)))
                                  : text.empty()          ? "an empty answer"
                                  : text.starts_with('<') ? "an HTML page"
                                                          : "none in its answer";
        throw auth_error(fmt::format("expected a JSON document with a token from the token server {}, found {}",
                                     url.host, found))
            .hint(k_not_refused);
    }
    return token;
}

}  // namespace kmm::registry
