// SPDX-License-Identifier: Apache-2.0
// The conversation with one repository of one registry: scheme, login, redirects, repeated tries, one deadline.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "net/retry.hpp"
#include "registry/client/auth.hpp"
#include "sys/clock.hpp"

namespace kmm::registry {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// timeout "pull-timeout": the image was not pulled within `allowed`.
[[nodiscard]] Error pull_timeout(std::chrono::milliseconds allowed);

/// What a repository is used for; decides which access a token is asked for.
enum class Access { pull, push };

/// A request that is more than a GET.
struct Outgoing {
    std::string method;
    std::string target;  ///< below /v2/REPOSITORY/, or a whole URL, as an answer's Location gave it
    Headers headers;
    std::string body;
};

class Session {
public:
    /// For Access::push, `mount_from` may name another repository of the same registry that blobs are taken over from.
    Session(net::HttpClient& http, sys::Clock& clock, const image::Reference& reference, const PullRequest& request,
            Access access = Access::pull, const std::string& mount_from = {});

    /// GET of `path` below /v2/REPOSITORY/ ("manifests/v1", "blobs/sha256:…"). Logs in when asked, follows up to ten
    /// redirects (credentials stay on the registry's origin). 200, 203, 206 and 416 return; of 416 the body does not go
    /// to `sink`. One try: see the error's is_retryable(). Errors: no_permission "registry-auth" for 401 and
    /// 403, not_found "image-not-found" for 404, unavailable "registry-error" for other answers, what HttpClient
    /// throws, timeout "pull-timeout" when the deadline of the pull is over.
    [[nodiscard]] net::Response get(const std::string& path, const Headers& headers, const net::BodySink& sink);

    /// Any other request, with the same login and the same errors; a redirect is followed only if it keeps the method
    /// (307, 308). The body of the answer is not kept.
    [[nodiscard]] net::Response send(const Outgoing& outgoing);
    /// The URL that `location`, a header of an answer, means. Errors: unavailable "registry-error" if it is none.
    [[nodiscard]] std::string resolve_location(const std::string& location) const;

    /// Waits before the next try after `failures` failures, as long as the last answer asked for. Throws `failure`, the
    /// last of them, with their number, if there were as many as policy() allows, or if the deadline would be over
    /// then, with what was asked for. Errors: timeout "pull-timeout" if it is over now; interrupted when the clock's
    /// sleep was cut short.
    void wait_before_retry(int failures, Error failure);

    /// Throws timeout "pull-timeout" if the deadline of the pull is over. Any thread may ask.
    void check_deadline() const;
    [[nodiscard]] const net::RetryPolicy& policy() const noexcept { return policy_; }
    /// True if this registry has answered a question for a manifest: the image is there.
    [[nodiscard]] bool gave_manifest() const noexcept { return gave_manifest_; }
    /// As Authenticator has it.
    [[nodiscard]] std::string refused_login() const { return authenticator_.refused_login(); }

private:
    [[nodiscard]] std::chrono::milliseconds remaining() const;
    /// What a request may take, more than nothing. Errors: timed_out().
    [[nodiscard]] std::chrono::milliseconds time_left() const;
    [[nodiscard]] Error interrupted() const;
    /// One exchange, in the time that is left. Errors: those of HttpClient; timed_out(); interrupted().
    [[nodiscard]] net::Response exchange(net::Request& request, const net::BodySink& sink);
    void choose_scheme();
    void note_peer(const net::Url& url, const net::Response& response);
    /// What the next wait_before_retry() waits at least, if the answer says so.
    void note_retry_after(const net::Response& refusal);
    [[nodiscard]] net::Response converse(const Outgoing& outgoing, const net::BodySink& sink);
    [[nodiscard]] net::Response follow(const net::Url& start, const Outgoing& outgoing, const net::BodySink& sink,
                                       std::string& error_body, std::string& elsewhere);
    [[nodiscard]] Error deadline_over() const;
    /// The same, and what the tries of the request that is repeated have ended with.
    [[nodiscard]] Error timed_out() const;
    /// The same for the try that ended with `cut`.
    [[nodiscard]] Error timed_out(const Error& cut);
    /// What to do about a 403.
    [[nodiscard]] std::string denial_hint() const;
    /// What an answer to a request of `path` that is none of success means, with all its details. `elsewhere`: the host
    /// that answered, if the registry had sent us there.
    [[nodiscard]] Error answer_error(net::Response response, const std::string& body, const std::string& path,
                                     const std::string& elsewhere);
    /// The same without details.
    [[nodiscard]] Error refusal(const net::Response& response, const std::string& path,
                                const std::string& elsewhere) const;
    /// Of an answer of the storage `elsewhere`.
    [[nodiscard]] Error storage_error(const net::Response& response, const std::string& path,
                                      const std::string& elsewhere) const;
    /// Of a 404 of the registry itself.
    [[nodiscard]] Error not_found_error(const std::string& path) const;

    net::HttpClient& http_;
    sys::Clock& clock_;
    image::Reference reference_;
    Access access_;
    net::TlsSettings tls_;
    std::function<bool()> cancelled_;
    std::function<void(const std::string&, std::chrono::milliseconds)> waiting_;
    Authenticator authenticator_;
    Boundary boundary_;
    net::Url origin_;
    bool scheme_known_ = false;
    bool gave_manifest_ = false;
    std::string no_tls_;  ///< why plain HTTP is spoken to an --insecure registry
    net::RetryPolicy policy_;
    std::optional<std::chrono::milliseconds> retry_after_;
    int failures_ = 0;         ///< tries of the present request that have failed
    std::string last_failure_;  ///< the message of the last of them
    std::chrono::milliseconds deadline_;      ///< on the clock's monotonic time
    std::chrono::milliseconds allowed_;
    std::minstd_rand random_;
};

/// The content coding of an answer, "" for none. None is asked for: one that comes is the doing of a proxy.
[[nodiscard]] std::string content_coding(const net::Response& response);

/// That `what`, "blob" or "manifest", came in `coding`, and is not what is stored: unavailable 69 "registry-error".
[[nodiscard]] Error coded_error(std::string_view what, std::string_view coding);

}  // namespace kmm::registry
