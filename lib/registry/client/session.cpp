// SPDX-License-Identifier: Apache-2.0
#include "registry/client/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "net/proxy.hpp"
#include "net/tls_words.hpp"
#include "value/reader.hpp"

namespace kmm::registry {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t k_error_body_max = 64U << 10U;
constexpr std::size_t k_error_text_max = 300;
constexpr int k_redirects_max = 10;
constexpr int k_logins_max = 16;

/// 203: a proxy has changed something on the way; whether the bytes are right is seen by their digest.
bool has_content(int status) { return status == 200 || status == 203 || status == 206; }

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// The registry's own words: "CODE: message" of the first entry of its error document, "" if it sent none.
std::string registry_words(const std::string& body) {
    Diagnostics faults;
    const auto documents = value::read_json(body, "answer", faults);
    if (has_errors(faults) || documents.empty()) {
        return {};
    }
    const value::Node* errors = documents.front().root.find("errors");
    if (errors == nullptr || errors->items().empty()) {
        return {};
    }
    const value::Node& first = errors->items().front();
    const std::string code = first.get_string({"code"});
    const std::string message = first.get_string({"message"});
    const std::string text = code + (code.empty() || message.empty() ? "" : ": ") + message;
    return base::escape(text.substr(0, k_error_text_max));
}

std::vector<std::string> scopes_of(const image::Reference& reference, Access access, const std::string& mount_from) {
    std::vector<std::string> scopes{"repository:" + reference.repository +
                                    (access == Access::push ? ":pull,push" : ":pull")};
    if (!mount_from.empty()) {
        scopes.push_back("repository:" + mount_from + ":pull");
    }
    return scopes;
}

}  // namespace

Error pull_timeout(milliseconds allowed) {
    return Error(Exit::timeout, "pull-timeout",
                 fmt::format("the image was not pulled within {}", base::format_duration(allowed)))
        .hint("raise --timeout; the next attempt starts from scratch");
}

Session::Session(net::HttpClient& http, sys::Clock& clock, const image::Reference& reference,
                 const PullRequest& request, Access access, const std::string& mount_from)
    : http_(http),
      clock_(clock),
      reference_(reference),
      access_(access),
      tls_(request.tls),
      cancelled_(request.cancelled),
      waiting_(request.waiting),
      authenticator_(reference, request, scopes_of(reference, access, mount_from)),
      deadline_(clock.monotonic() + request.deadline),
      allowed_(request.deadline),
      random_(std::random_device{}()) {
    policy_.attempts = std::max(1, request.attempts);
    const auto url = net::parse_url("https://" + reference.registry + "/");
    if (!url) {
        throw Error(Exit::data, "bad-reference", "expected a registry host, found \"" +
                                                     base::escape(reference.registry) + "\"");
    }
    origin_ = *url;
    boundary_.host = origin_.host;
    boundary_.insecure = request.tls.insecure;
    const auto literal = net::literal_scope(origin_.host);
    boundary_.scope = literal.value_or(net::AddressScope::global);
    boundary_.reached = literal.has_value();
}

milliseconds Session::remaining() const { return deadline_ - clock_.monotonic(); }

milliseconds Session::time_left() const {
    const milliseconds left = remaining();
    if (left <= milliseconds(0)) {
        throw timed_out();
    }
    return left;
}

Error Session::deadline_over() const {
    if (access_ == Access::pull) {
        return pull_timeout(allowed_);
    }
    return Error(Exit::timeout, "push-timeout",
                 fmt::format("the image was not pushed within {}", base::format_duration(allowed_)))
        .hint("--timeout allows more; what has arrived is not sent again");
}

Error Session::timed_out() const {
    Error error = deadline_over();
    if (failures_ != 0) {
        error.detail("tries", std::to_string(failures_)).detail("last", last_failure_);
    }
    return error;
}

Error Session::timed_out(const Error& cut) {
    failures_ += failures_ != 0 ? 1 : 0;
    Error error = timed_out();
    for (const auto& [key, value] : cut.details()) {
        error.detail(key, value);
    }
    return error;
}

Error Session::interrupted() const {
    if (access_ == Access::pull) {
        return Error(Exit::interrupted, "interrupted", "interrupted while pulling; nothing was changed");
    }
    return Error(Exit::interrupted, "interrupted", "interrupted while pushing")
        .hint("run the same command again; what has arrived is not sent again");
}

net::Response Session::exchange(net::Request& request, const net::BodySink& sink) {
    request.timeout = time_left();
    request.cancelled = cancelled_;
    try {
        return http_.send(request, sink);
    } catch (const Error& error) {
        if (error.code() == "network-timeout" && remaining() <= milliseconds(0)) {
            throw timed_out(error);
        }
        throw error.exit() == Exit::interrupted && cancelled_ && cancelled_() ? interrupted() : error;
    }
}

void Session::check_deadline() const {
    if (remaining() <= milliseconds(0)) {
        throw deadline_over();
    }
}

void Session::wait_before_retry(int failures, Error failure) {
    if (failures >= policy_.attempts) {
        failure.detail("tries", std::to_string(failures));
        if (failure.hint().empty()) {
            failure.hint("run the same command again later");
        }
        throw failure;
    }
    const double random = static_cast<double>(random_() - std::minstd_rand::min()) /
                          (static_cast<double>(std::minstd_rand::max()) + 1.0);
    const milliseconds wait = net::retry_delay(policy_, failures, retry_after_, random);
    const auto asked = std::exchange(retry_after_, std::nullopt);
    failures_ = failures;
    last_failure_ = failure.message();
    if (const milliseconds left = time_left(); wait >= left) {
        failure.detail("tries", std::to_string(failures));
        if (asked >= wait) {
            failure.detail("wait", fmt::format("asked to wait {}, {} are left", base::format_duration(*asked),
                                               base::format_duration(left)));
        }
        if (failure.hint().empty()) {
            failure.hint("--timeout allows more; or run the same command again later");
        }
        throw failure;
    }
    if (waiting_) {
        waiting_(last_failure_, wait);
    }
    if (!clock_.sleep_for(wait)) {
        throw interrupted();
    }
}

/// The first address that the registry's name has led to is the limit from then on: names may mean something else
/// later.
void Session::note_peer(const net::Url& url, const net::Response& response) {
    const auto scope = url.host == boundary_.host ? net::literal_scope(response.peer_address) : std::nullopt;
    if (scope && !boundary_.reached) {
        boundary_.scope = *scope;
        boundary_.reached = true;
    }
}

/// Only with --insecure: https without verification first, plain http if nobody there is seen to speak TLS.
void Session::choose_scheme() {
    if (scheme_known_) {
        return;
    }
    if (tls_.insecure) {
        net::Request request;
        request.tls = tls_;
        net::Url probe = origin_;
        probe.path = "/v2/";
        request.url = probe.to_string();
        try {
            request.scope_max = scope_max_for(origin_, boundary_);
            note_peer(origin_, exchange(request, [](const net::Response&, std::string_view) { return false; }));
        } catch (const Error& error) {
            if ((error.code() != "tls" && error.code() != "network") || !tls_.pinned_key.empty()) {
                throw;  // a key that is pinned wants TLS
            }
            if (error.code() == "tls") {
                if (net::answers_in_tls(error.message())) {
                    throw;
                }
                no_tls_ = error.message();
            }
            const bool default_port = origin_.port == 443;
            origin_.scheme = "http";
            origin_.port = default_port ? 80 : origin_.port;
        }
    }
    scheme_known_ = true;
}

net::Response Session::follow(const net::Url& start, const Outgoing& outgoing, const net::BodySink& sink,
                              std::string& error_body, std::string& elsewhere) {
    net::Url url = start;
    for (int hop = 0;; ++hop) {
        net::Request request;
        request.url = url.to_string();
        request.method = outgoing.method;
        request.headers = outgoing.headers;
        request.body = outgoing.body;
        request.tls = tls_;
        request.scope_max = scope_max_for(url, boundary_);
        const bool left_origin = !url.same_origin(origin_);
        elsewhere = left_origin ? url.host : std::string();
        if (left_origin) {
            request.tls.client_certificate.clear();
            request.tls.client_key.clear();
            request.tls.pinned_key.clear();
            request.referred_by = origin_.host;
        }
        if (!left_origin && !authenticator_.authorization().empty()) {
            request.headers.emplace_back("Authorization", authenticator_.authorization());
        }
        error_body.clear();
        net::Response response;
        try {
            response = exchange(request, [&](const net::Response& head, std::string_view piece) {
                if (has_content(head.status)) {
                    return sink(head, piece);
                }
                error_body += piece.substr(0, k_error_body_max - std::min(k_error_body_max, error_body.size()));
                return error_body.size() < k_error_body_max;
            });
        } catch (Error& error) {
            if (error.code() == "network" && !no_tls_.empty()) {
                error.detail("https", no_tls_);
            }
            throw;
        }
        note_peer(url, response);
        if (!is_redirect(response.status)) {
            return response;
        }
        const auto location = response.header("location");
        const bool keeps_method = response.status == 307 || response.status == 308;
        if (outgoing.method != "GET" && outgoing.method != "HEAD" && !keeps_method) {
            throw Error(Exit::unavailable, "redirect-refused",
                        fmt::format("expected an answer to {} or a redirect that keeps the method, found {}",
                                    outgoing.method, response.status))
                .detail("url", net::redact_url(request.url));
        }
        const auto next = location ? net::resolve_url(url, *location) : std::nullopt;
        if (!next) {
            throw Error(Exit::unavailable, "redirect-refused",
                        fmt::format("expected an http(s) location in the redirect of {}, found \"{}\"",
                                    net::redact_url(request.url), net::redact_url(location.value_or(""))));
        }
        if (hop == k_redirects_max) {
            throw Error(Exit::unavailable, "redirect-refused", "expected at most 10 redirects, found more")
                .detail("url", net::redact_url(start.to_string()));
        }
        check_redirect(url, *next, boundary_);
        url = *next;
    }
}

std::string Session::denial_hint() const {
    switch (authenticator_.caller()) {
        case Caller::not_asked:
            return "no login was asked for: check the image name, and whether the registry, or a proxy before it, "
                   "admits this node's address";
        case Caller::nobody:
            return authenticator_.tried() + ": check the image name, then the pull secret or --authfile";
        case Caller::credential: break;
    }
    return fmt::format("the credentials are known and may not {} this repository: ask for the permission to {}",
                       access_ == Access::pull ? "pull" : "push to", access_ == Access::pull ? "pull" : "push");
}

Error Session::storage_error(const net::Response& response, const std::string& path,
                             const std::string& elsewhere) const {
    const std::string who =
        net::speaker(response, "the server " + base::escape(elsewhere) + " that the registry redirects to");
    if (response.status == 404) {
        return Error(Exit::not_found, "image-not-found", who + " has no " + path).hint("push the image again");
    }
    Error refused(Exit::unavailable, "registry-error", fmt::format("{} answered {}", who, response.status));
    if (response.status == 401 || response.status == 403) {
        refused.hint(
            "the registry's storage refused what the registry had signed: compare their clocks, and the registry's "
            "key there");
    }
    return net::is_retryable_status(response.status) ? std::move(refused).retryable() : std::move(refused);
}

Error Session::not_found_error(const std::string& path) const {
    if (access_ == Access::push && path.find("://") != std::string::npos) {
        return Error(Exit::unavailable, "registry-error",
                     fmt::format("the registry {} does not know the upload that it has opened", reference_.registry))
            .hint("several registries behind one address need one storage, or must keep a client on one of them");
    }
    if (access_ == Access::push) {
        return Error(Exit::not_found, "image-not-found",
                     fmt::format("repository {} does not exist in the registry", reference_.name()))
            .hint("some registries want the repository to be made before anything is pushed to it");
    }
    const bool is_blob = path.starts_with("blobs/"), is_named = path == "manifests/" + reference_.manifest_name();
    if (!is_named && !gave_manifest_) {
        return Error(Exit::not_found, "image-not-found", "the registry has no " + path).hint("push the image again");
    }
    if (is_blob) {
        return Error(Exit::not_found, "image-not-found", "the registry has the manifest and not " + path)
            .hint("push the image again");
    }
    if (!is_named) {
        return Error(Exit::not_found, "image-not-found", "the registry has the index and not " + path)
            .hint("push the image again, with all its platforms");
    }
    return Error(Exit::not_found, "image-not-found", "the registry has no " + reference_.to_string())
        .hint("check the repository name and the tag");
}

Error Session::refusal(const net::Response& response, const std::string& path, const std::string& elsewhere) const {
    const int status = response.status;
    if (!elsewhere.empty() && (status != 404 || path.starts_with("blobs/"))) {
        return storage_error(response, path, elsewhere);
    }
    if (status == 401) {
        return Error(Exit::no_permission, "registry-auth", "the registry wants a login: " + authenticator_.tried())
            .hint(authenticator_.found_no_token_server()
                      ? "no credentials were looked at: the registry itself names that address (realm); check the "
                        "image name, then the registry's settings"
                      : "check the image name and tag, then the pull secret or --authfile; some registries also ask "
                        "for a login for images that do not exist");
    }
    if (status == 403) {
        return Error(Exit::no_permission, "registry-auth",
                     net::speaker(response, "the registry") + " denies access to " + reference_.name())
            .hint(denial_hint());
    }
    if (status == 404) {
        return not_found_error(path);
    }
    Error other(
        Exit::unavailable, "registry-error",
        fmt::format("{} answered {}", net::speaker(response, "the registry " + reference_.registry), status));
    if (status == 413) {
        other.hint("raise the limit of the size of uploads in the registry, or in a proxy before it (nginx: "
                   "client_max_body_size)");
    }
    return net::is_retryable_status(status) ? std::move(other).retryable() : std::move(other);
}

Error Session::answer_error(net::Response response, const std::string& body, const std::string& path,
                            const std::string& elsewhere) {
    const int status = response.status;
    const std::string words = registry_words(body);
    if (!words.empty() || response.header("docker-distribution-api-version")) {
        response.proxy.clear();  // no proxy talks like that
    }
    if (status == net::k_proxy_login_wanted && !response.proxy.empty()) {
        return net::proxy_refusal(response.proxy, status, "an answer of the registry " + reference_.registry);
    }
    Error error = refusal(response, path, elsewhere);
    error.cause_http(status);
    error.detail("image", reference_.to_string());
    if (error.code() == "registry-auth" && !authenticator_.skipped().empty()) {
        error.detail("skipped", authenticator_.skipped());
    }
    if (const std::string login = refused_login(); error.code() != "registry-auth" && !login.empty()) {
        error.detail("login", login + ", the registry was asked without one");
    }
    if (!words.empty()) {
        error.detail("registry", words);
    }
    return error;
}

net::Response Session::get(const std::string& path, const Headers& headers, const net::BodySink& sink) {
    net::Response response = converse(Outgoing{"GET", path, headers, {}}, sink);
    if (!has_content(response.status) && response.status != 416) {
        const std::string who = net::speaker(response, "the registry " + reference_.registry);
        Error other(Exit::unavailable, "registry-error", fmt::format("{} answered {}", who, response.status));
        throw other.cause_http(response.status).detail("image", reference_.to_string());
    }
    return response;
}

net::Response Session::send(const Outgoing& outgoing) {
    return converse(outgoing, [](const net::Response&, std::string_view) { return true; });
}

std::string Session::resolve_location(const std::string& location) const {
    const auto url = net::resolve_url(origin_, location);
    if (!url) {
        throw Error(Exit::unavailable, "registry-error",
                    fmt::format("expected an http(s) location from the registry {}, found \"{}\"", reference_.registry,
                                net::redact_url(location)));
    }
    check_redirect(origin_, *url, boundary_);
    return url->to_string();
}

void Session::note_retry_after(const net::Response& refusal) {
    if (const auto asked = net::retry_after(refusal, clock_.now_unix())) {
        retry_after_ = asked;
    }
}

net::Response Session::converse(const Outgoing& outgoing, const net::BodySink& sink) {
    choose_scheme();
    net::Url url = origin_;
    if (const auto whole =
            outgoing.target.find("://") == std::string::npos ? std::nullopt : net::parse_url(outgoing.target)) {
        url = *whole;
    } else {
        const std::size_t mark = outgoing.target.find('?');
        url.path = "/v2/" + reference_.repository + "/" + outgoing.target.substr(0, mark);
        url.query = mark == std::string::npos ? "" : outgoing.target.substr(mark + 1);
    }
    for (int login = 0;; ++login) {
        std::string error_body;
        std::string elsewhere;
        net::Response response = follow(url, outgoing, sink, error_body, elsewhere);
        if (response.status == 401 && elsewhere.empty() && login < k_logins_max) {
            try {
                if (authenticator_.answer(response, boundary_, [this](net::Request& request, const net::BodySink& to) {
                        return exchange(request, to);
                    })) {
                    continue;
                }
            } catch (const Error&) {
                if (const auto refusal = authenticator_.take_refusal()) {
                    note_retry_after(*refusal);
                }
                throw;
            }
        }
        if ((response.status >= 200 && response.status < 300) || response.status == 416) {
            authenticator_.accepted();
            failures_ = 0;
            gave_manifest_ = gave_manifest_ || outgoing.target.starts_with("manifests/");
            return response;
        }
        note_retry_after(response);
        throw answer_error(response, error_body, outgoing.target, elsewhere);
    }
}

std::string content_coding(const net::Response& response) {
    std::string coding = response.header("content-encoding").value_or("");
    return base::to_lower(coding) == "identity" ? std::string() : coding;
}

Error coded_error(std::string_view what, std::string_view coding) {
    constexpr std::size_t k_shown_max = 40;
    return Error(Exit::unavailable, "registry-error",
                 fmt::format("expected the {} as it is stored, found it in the content coding \"{}\"", what,
                             base::escape(coding.substr(0, k_shown_max))))
        .hint("a proxy or cache in front of the registry compresses what it passes on: disable that there");
}

}  // namespace kmm::registry
