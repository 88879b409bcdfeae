// SPDX-License-Identifier: Apache-2.0
// Who we are to a registry: challenges, credentials, tokens (distribution-spec, RFC 7235, Docker token authentication).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/reference.hpp"
#include "net/http.hpp"
#include "net/url.hpp"
#include "registry/client/credentials.hpp"
#include "registry/client/request.hpp"

namespace kmm::registry {

/// One challenge of a WWW-Authenticate header.
struct Challenge {
    std::string scheme;                         ///< lower case: "bearer", "basic"
    std::map<std::string, std::string> params;  ///< names lower case, values unquoted
};

/// All challenges of one header value; what cannot be read is left out.
[[nodiscard]] std::vector<Challenge> parse_challenges(std::string_view header);

/// The credentials that apply to `reference`, most specific key first; equal keys keep their order. A host component
/// "*" stands for one label, as for the kubelet.
[[nodiscard]] std::vector<Credential> matching_credentials(const std::vector<Credential>& all,
                                                           const image::Reference& reference);

/// Where a request that the registry (or an answer of it) asks for may go.
struct Boundary {
    std::string host;                                      ///< the registry's, without port
    net::AddressScope scope = net::AddressScope::global;   ///< of the address that the registry was reached at first
    bool insecure = false;
    bool reached =
        false;  ///< `scope` is known: of a numeric reference from the start, of a name after the first answer
};

/// Checks the realm of a token challenge as go-containerregistry does: https (http only if insecure), and no address in
/// numbers that is not public unless it is the registry's own host. Errors: no_permission "registry-auth".
[[nodiscard]] net::Url check_realm(const std::string& realm, const Boundary& boundary);

/// `https` never becomes `http`, and numeric addresses that are not public are only followed on the registry's own
/// host. Errors: unavailable "redirect-refused".
void check_redirect(const net::Url& from, const net::Url& to, const Boundary& boundary);

/// How far the address that `url`'s name resolves to may be from public: the scope at which the registry was reached at
/// first, also for the registry's own name, which may mean something else by then. Before that: anything but link-local
/// for its name, public for others.
[[nodiscard]] net::AddressScope scope_max_for(const net::Url& url, const Boundary& boundary);

/// Sends a request, in the time that there is.
using Send = std::function<net::Response(net::Request&, const net::BodySink&)>;

/// Who a registry was asked as: nobody before it asked for a login, somebody, or nobody as no credential served.
enum class Caller { not_asked, credential, nobody };

/// Finds the Authorization header that the registry accepts, trying every matching credential once, then nobody.
class Authenticator {
public:
    /// `scopes` is what a token is asked for: "repository:NAME:pull,push".
    Authenticator(const image::Reference& reference, const PullRequest& request, std::vector<std::string> scopes);

    /// "" or the value of the Authorization header for requests to the registry itself.
    [[nodiscard]] const std::string& authorization() const noexcept { return authorization_; }
    /// Digests a 401: true if authorization() has changed and the request is worth another try.
    /// Errors: no_permission "registry-auth" if no challenge can be answered or the token server misbehaves; those of
    /// `send`.
    [[nodiscard]] bool answer(const net::Response& unauthorized, const Boundary& boundary, const Send& send);
    /// What the token server that had no token when answer() threw last had answered; asking takes it away.
    [[nodiscard]] std::optional<net::Response> take_refusal() { return std::exchange(refusal_, std::nullopt); }
    /// Notes that the registry accepted authorization(): a later 401 means that the token ran out.
    void accepted() noexcept { served_ = true; }
    /// True if all that was asked for a token answered that there is nothing: no credential was judged.
    [[nodiscard]] bool found_no_token_server() const noexcept { return !absent_.empty(); }
    /// What the token server answered if it is none, "no credentials for HOST" or "N credentials for HOST were
    /// refused", and which program might know one: none is ever run.
    [[nodiscard]] std::string tried() const;
    [[nodiscard]] Caller caller() const noexcept;
    /// That credentials were refused and the registry is asked as nobody, "" otherwise.
    [[nodiscard]] std::string refused_login() const;
    /// What of the credentials could not be read, "" if all could.
    [[nodiscard]] const std::string& skipped() const noexcept { return skipped_; }

private:
    [[nodiscard]] std::string refused() const;
    /// True if the registry has refused a token that was never accepted, and names repositories in its challenge that
    /// none was asked for.
    [[nodiscard]] bool widen(const Challenge& challenge);
    [[nodiscard]] std::optional<std::string> fetch_token(const Challenge& challenge, const Credential* credential,
                                                         const Boundary& boundary, const Send& send);

    image::Reference reference_;
    std::vector<std::string> scopes_;
    std::vector<std::string> wider_;  ///< of the challenge, where a token for scopes_ was refused
    net::TlsSettings tls_;
    std::vector<Credential> candidates_;
    std::string skipped_;        ///< of the request
    std::string helper_;         ///< of the most specific key that has one
    std::size_t next_ = 0;       ///< the next candidate; candidates_.size() is "nobody"
    std::string absent_;         ///< what a token server answered that is none
    bool judged_ = false;        ///< a token server has refused something, or given a token
    bool served_ = false;        ///< the current authorization was accepted at least once
    bool got_token_ = false;     ///< the current authorization is a token that was fetched
    std::string authorization_;
    std::optional<net::Response> refusal_;
};

}  // namespace kmm::registry
