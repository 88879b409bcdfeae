// SPDX-License-Identifier: Apache-2.0
// One request, from the credentials to the answer, through everything that may come between.
#include "kube/client.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/access.hpp"
#include "kube/watch.hpp"
#include "net/address.hpp"
#include "net/proxy.hpp"
#include "net/url.hpp"
#include "value/reader.hpp"

namespace kmm::kube {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t k_failure_max = 1U << 20U;  ///< a Status
constexpr std::size_t k_idle_max = 16;
constexpr milliseconds k_silence{5000};  ///< of a request that is under way, before somebody is told

/// TLS that broke off rather than was refused: a server that restarts does that.
bool is_broken_handshake(const Error& error) {
    constexpr std::array<std::string_view, 4> k_signs{"Connection reset", "SSL_ERROR_SYSCALL", "unexpected eof",
                                                      "Broken pipe"};
    return error.code() == "tls" && std::any_of(k_signs.begin(), k_signs.end(), [&](std::string_view sign) {
               return error.message().find(sign) != std::string::npos;
           });
}

/// What a proxy refuses, as without a login, is no connection that was lost: it stays so.
bool is_lost_connection(const Error& error) {
    return (error.code() == "network" && error.is_retryable()) || error.code() == "network-timeout" ||
           is_broken_handshake(error);
}

/// The text of `299 - "text"` (RFC 7234 5.5).
std::string warning_text(std::string_view header) {
    const std::size_t start = header.find('"');
    const std::size_t end = header.rfind('"');
    if (!header.starts_with("299") || start == std::string_view::npos || end <= start) { return ""; }
    std::string text;
    for (std::size_t i = start + 1; i < end; ++i) {
        if (header[i] == '\\' && i + 1 < end) { ++i; }
        text.push_back(header[i]);
    }
    return base::escape(text);
}

/// A server that is not trusted: what to look at is in the kubeconfig.
Error untrusted(Error error) {
    const auto says = [&](std::string_view text) { return error.message().find(text) != std::string::npos; };
    if (says("does not match") || says("no alternative certificate subject name")) {
        return std::move(error).hint(
            "tls-server-name of the kubeconfig's cluster says which name its certificate is for");
    }
    if (says("expired") || says("not yet valid")) {
        return std::move(error).hint("look at the clock of this host, and at the API server's certificate");
    }
    if (says("private key")) {
        return std::move(error).hint(
            "client-key of the kubeconfig's user must be that of its client-certificate, unencrypted");
    }
    if (says(" alert ")) {
        return std::move(error).hint(
            "the server does not take our certificate: look at client-certificate of the kubeconfig's user");
    }
    if (says("wrong version number") || says("packet length too long")) {
        return std::move(error).hint("there is no TLS on that port: look at cluster.server of the kubeconfig");
    }
    return std::move(error).hint(
        "certificate-authority of the kubeconfig's cluster must be the one that signed its certificate");
}

/// The proxy that was to make the connection; nullptr if there was none.
const std::string* proxy_in(const Error& error) {
    for (const auto& [key, text] : error.details()) {
        if (key == "proxy") { return &text; }
    }
    return nullptr;
}

std::string outage_reason(const Error& error) {
    const auto* proxy = proxy_in(error);
    return proxy == nullptr ? error.message() : fmt::format("{} (proxy {})", error.message(), *proxy);
}

/// Statuses of a server, or of what stands before it, that is not there just now.
bool is_away(int status) { return status == 502 || status == 503 || status == 504; }

/// As client-go has it, the proxy looks names up: it may stand in a network that knows more of them than this host.
std::string proxy_of(const Connection& connection) {
    constexpr std::string_view k_scheme = "socks5://";
    if (!connection.proxy.starts_with(k_scheme)) { return connection.proxy; }
    return "socks5h://" + connection.proxy.substr(k_scheme.size());
}

/// As client-go has it, the proxy variables are not for servers on loopback.
bool is_on_this_host(const std::string& server) {
    const auto url = net::parse_url(server);
    return url && (url->host == "localhost" || net::literal_scope(url->host) == net::AddressScope::loopback);
}

Error bad_answer(const Action& action, const std::string& what) {
    return Error(Exit::unavailable, "bad-answer", fmt::format("{}: {}", to_string(action), what)).retryable();
}

/// What admission answers while its plugins are not ready.
bool is_admission_starting(const Failure& failure) {
    return failure.code == 403 && failure.message.find("not yet ready to handle request") != std::string::npos;
}

/// A refusal of a server that has not become ready.
Error may_be_wrong(Error error) {
    const std::string hint = error.hint();
    return std::move(error)
        .hint("the API server is not ready and may not know all roles: kubectl get --raw '/readyz?verbose'\n" +
              (hint.empty() ? hint : "if it does, " + hint))
        .retryable();
}

}  // namespace

Client::Client(Connection connection, Seams seams, ClientOptions options)
    : connection_(std::move(connection)),
      seams_(std::move(seams)),
      options_(std::move(options)),
      credentials_(options_.credentials
                       ? options_.credentials
                       : std::make_shared<Credentials>(connection_, seams_.clock, options_.observer.on_plugin_line)) {}

double Client::chance() {
    std::array<std::uint8_t, 4> bytes{};
    seams_.random.fill(bytes);
    return std::bit_cast<std::uint32_t>(bytes) / 4294967296.0;
}

std::unique_ptr<net::HttpClient> Client::borrow() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto http = std::move(idle_.back());
            idle_.pop_back();
            return http;
        }
    }
    return seams_.make_http();
}

void Client::give_back(std::unique_ptr<net::HttpClient> http) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < k_idle_max) { idle_.push_back(std::move(http)); }
}

net::Request Client::request_of(const Call& call, std::uint64_t& generation, const bool& has_data) {
    Proof proof = credentials_->proof(
        [this] { return stopped_ || is_unwanted() || (options_.cancelled && options_.cancelled()); });
    generation = proof.generation;
    net::Request request;
    request.method = call.method;
    request.url = connection_.server + call.path;
    char separator = '?';
    for (const auto& [name, value] : call.query) {
        request.url += fmt::format("{}{}={}", separator, name, net::percent_encode(value));
        separator = '&';
    }
    request.headers = std::move(proof.headers);
    request.headers.emplace_back("Accept", call.accept);
    if (!call.body.empty()) {
        request.headers.emplace_back("Content-Type",
                                     call.content_type.empty() ? "application/json" : call.content_type);
    }
    request.body = call.body;
    request.tls = std::move(proof.tls);
    request.proxy = proxy_of(connection_);
    if (is_on_this_host(connection_.server)) { request.proxy_rule = net::Request::ProxyRule::direct; }
    request.encoding = net::Encoding::gzip;
    request.timeout = call.timeout.count() > 0 ? call.timeout : options_.request_timeout;
    // A watch ends by its own ways.
    const bool is_asked = !call.one_try_after_data;
    // A server may think about a change for as long as the timeout says. Of a read it is as good as away, be it before
    // the answer or in the middle of it.
    request.stall_bytes_per_second = 0;
    milliseconds limit = request.timeout;
    if (is_asked && call.method == "GET" && options_.api_timeout < limit) {
        limit = options_.api_timeout;
        request.stall_bytes_per_second = 1;
        request.stall_window = std::max(std::chrono::ceil<std::chrono::seconds>(limit), std::chrono::seconds(1));
    }
    request.cancelled = [this, theirs = call.cancelled, is_asked, begin = seams_.clock.monotonic(), is_told = false,
                         reason = to_string(call.action), limit, &has_data]() mutable {
        if (stopped_ || (options_.cancelled && options_.cancelled()) || (theirs && theirs())) { return true; }
        const milliseconds passed = seams_.clock.monotonic() - begin;
        if (!is_asked || passed < k_silence) { return false; }
        if (!is_told && !has_data && limit - passed >= milliseconds(1000) && options_.observer.on_outage) {
            is_told = true;
            options_.observer.on_outage(
                Outage{connection_.server, reason, passed, limit - passed, Outage::Kind::silent});
        }
        return is_unwanted();
    };
    return request;
}

net::Response Client::send(const Call& call, Reply& reply, std::uint64_t& generation) {
    bool has_data = false;  // what comes slowly is no silence
    const net::Request request = request_of(call, generation, has_data);
    auto http = borrow();
    const milliseconds begin = seams_.clock.monotonic();
    const net::Response response = http->send(request, [&](const net::Response& head, std::string_view piece) {
        has_data = true;
        if (call.on_piece && head.status >= 200 && head.status < 300) { return call.on_piece(piece); }
        const std::size_t most =
            head.status >= 200 && head.status < 300 ? call.body_max : std::min(call.body_max, k_failure_max);
        if (reply.body.size() + piece.size() > most) {
            throw Error(Exit::unavailable, "bad-answer",
                        fmt::format("{}: expected an answer of at most {}, found more", to_string(call.action),
                                    base::format_bytes(most)))
                .hint("is that the API server? kubectl get --raw /version asks it");
        }
        reply.body += piece;
        return true;
    });
    give_back(std::move(http));  // after an error the connection is not used again
    if (const milliseconds passed = seams_.clock.monotonic() - begin;
        passed >= k_silence && !call.one_try_after_data && options_.observer.on_return) {
        options_.observer.on_return(passed);
    }
    return response;
}

void Client::note_warnings(const net::Response& response) {
    for (const auto& header : response.all_headers("warning")) {
        const std::string text = warning_text(header);
        if (text.empty()) { continue; }
        {
            const std::lock_guard lock(mutex_);
            if (!warned_.insert(text).second) { continue; }
        }
        if (options_.observer.on_warning) { options_.observer.on_warning(text); }
    }
}

void Client::pause(milliseconds wait, const Outage& outage) {
    if (options_.observer.on_outage) { options_.observer.on_outage(outage); }
    constexpr milliseconds k_slice{1000};
    const milliseconds slice = options_.stop_waiting ? k_slice : wait;
    for (milliseconds left = wait;; left -= slice) {
        if (is_unwanted()) { throw not_waited_for(outage.reason); }
        const bool is_cancelled = stopped_ || (options_.cancelled && options_.cancelled());
        if (is_cancelled || !seams_.clock.sleep_for(std::min(left, slice))) {
            if (is_unwanted()) { throw not_waited_for(outage.reason); }
            throw Error(Exit::interrupted, "interrupted", "interrupted while waiting for the API server");
        }
        if (left <= slice) { return; }
    }
}

Error Client::not_waited_for(const std::string& reason) const {
    Error error = stopped_waiting("the API server");
    error.detail("server", base::escape(connection_.server));
    if (!connection_.proxy.empty()) { error.detail("proxy", net::proxy_name(connection_.proxy)); }
    return std::move(error)
        .detail("last", base::escape(reason))
        .hint("kubectl get --raw /readyz shows whether the API server is up");
}

Error Client::given_up(Error error, const Action& action, milliseconds spent,
                       std::optional<milliseconds> retry_after) const {
    if (error.http_cause()) {
        if (!retry_after || spent + *retry_after < options_.api_timeout) { return error; }
        const std::string hint = error.hint();
        const auto asked =
            fmt::format("the server asks to wait {}, which is longer than --api-timeout {} leaves: try again then",
                        base::format_duration(*retry_after), base::format_duration(options_.api_timeout));
        return std::move(error)
            .detail("retry after", base::format_duration(*retry_after))
            .hint(hint.empty() ? asked : hint + "\n" + asked);
    }
    const std::string* proxy = proxy_in(error);
    const std::string lasted = spent < milliseconds(1000) ? "less than 1s" : base::format_duration(spent);
    Error away(
        Exit::unavailable, "api-unreachable",
        fmt::format("{}: no answer from {}{} in {}: {}", to_string(action), base::escape(connection_.server),
                    proxy == nullptr ? "" : fmt::format(" through the proxy {}", *proxy), lasted, error.message()));
    if (spent < options_.api_timeout) {
        away.detail("limit", fmt::format("--api-timeout {}; the next try would come later",
                                         base::format_duration(options_.api_timeout)));
    }
    if (proxy == nullptr) {
        return std::move(away).hint("kubectl get --raw /readyz shows whether the API server is up").retryable();
    }
    const bool is_configured = !connection_.proxy.empty();
    return std::move(away)
        .detail("proxy", *proxy)
        .hint(is_configured ? "proxy-url of the kubeconfig's cluster names the proxy: is it running, and does it reach "
                              "the API server?"
                            : "https_proxy, http_proxy or all_proxy names the proxy: is it running? no_proxy=HOST "
                              "reaches the API server without it")
        .retryable();
}

void Client::note_away() {
    away_ms_ = seams_.clock.monotonic().count();
    ready_ms_ = -1;
}

bool Client::knows_roles() const {
    constexpr milliseconds k_known_for{10'000};
    const std::int64_t ready = ready_ms_;
    return ready >= 0 && seams_.clock.monotonic() - milliseconds(ready) < k_known_for;
}

Client::Readiness Client::readiness() {
    Call call;
    call.path = "/readyz";
    call.accept = "*/*";
    call.timeout = milliseconds(5000);
    call.body_max = 64U << 10U;
    try {
        Reply reply;
        std::uint64_t generation = 0;
        const int status = send(call, reply, generation).status;
        if (status == 200) { return Readiness::ready; }
        if (status == 403) { return Readiness::hidden; }
        return status == 429 || status == 500 || is_away(status) ? Readiness::starting : Readiness::unknown;
    } catch (const Error& error) {
        if (!is_lost_connection(error)) { throw; }
        note_away();
        return Readiness::starting;
    }
}

Client::Verdict Client::judge(bool knew_roles, milliseconds since, const std::string& reason) {
    constexpr milliseconds k_starts_within{30'000};
    constexpr milliseconds k_hidden_for{5000};  // the role by which everybody may read /readyz is there within a second
    constexpr milliseconds k_between{500};
    if (knew_roles) { return Verdict::stands; }
    const Readiness readiness = this->readiness();
    const milliseconds now = seams_.clock.monotonic();
    if (readiness == Readiness::ready) {
        ready_ms_ = now.count();
        return now < since + k_starts_within ? Verdict::again : Verdict::stands;
    }
    const std::int64_t away = away_ms_;
    milliseconds limit = std::min(options_.api_timeout, k_starts_within);
    if (readiness == Readiness::hidden) { limit = std::min(limit, k_hidden_for); }
    if (readiness == Readiness::unknown) {
        limit = std::min(limit, away < 0 ? milliseconds(0) : milliseconds(away) + k_starts_within - since);
    }
    if (now + k_between >= since + limit) {
        return readiness == Readiness::starting ? Verdict::unsure : Verdict::stands;
    }
    pause(k_between, Outage{connection_.server, reason, now - since, k_between, Outage::Kind::starting});
    return Verdict::again;
}

Reply Client::exchange(const Call& call) {
    const milliseconds start = seams_.clock.monotonic();
    int failures = 0;
    int refusals = 0;
    bool has_refreshed = false;
    bool uncertain = false;
    std::optional<milliseconds> refused_since;
    const auto tell_return = [&] {
        if (failures > 0 && options_.observer.on_return) {
            options_.observer.on_return(seams_.clock.monotonic() - start);
        }
    };
    for (;;) {
        const bool knew_roles = knows_roles();
        if (call.method != "GET" && options_.before_change) { options_.before_change(); }
        Reply reply;
        reply.uncertain = uncertain;
        std::optional<milliseconds> retry_after;
        std::optional<Error> error;
        std::uint64_t generation = 0;
        try {
            const net::Response response = send(call, reply, generation);
            note_warnings(response);
            reply.status = response.status;
            const bool is_busy = response.status == 429 || response.status >= 500;
            if (response.status >= 200 && response.status < 300) {
                tell_return();
                return reply;
            }
            reply.failure = read_failure(response.status, reply.body);
            if (response.status == 401 && !has_refreshed && credentials_->refresh(generation)) {
                has_refreshed = true;
                continue;
            }
            retry_after = net::retry_after(response, seams_.clock.now_unix());
            if (call.is_answer && call.is_answer(*reply.failure)) {
                tell_return();
                reply.retry_after = retry_after;
                return reply;
            }
            error = to_error(*reply.failure, call.action);
            const bool is_anonymous =
                response.status == 403 && reply.failure->message.find(k_anonymous) != std::string::npos;
            if (is_anonymous || (response.status == 401 && !connection_.has_credentials())) {
                error->hint(anonymous_hint(connection_));
            }
            if (is_right_missing(*error) || is_admission_starting(*reply.failure)) {
                if (!refused_since) { refused_since = seams_.clock.monotonic(); }
                const Verdict verdict = judge(knew_roles, *refused_since, error->message());
                if (verdict == Verdict::unsure) { throw may_be_wrong(std::move(*error)); }
                if (verdict == Verdict::again) {
                    if (seams_.clock.monotonic() > *refused_since) { ++failures; }
                    continue;
                }
            }
            if (!is_busy) { tell_return(); }
            if (!is_busy || (!is_away(response.status) && ++refusals >= options_.attempts)) { throw std::move(*error); }
            note_away();
            uncertain = uncertain || response.status >= 500;
        } catch (const Error& thrown) {
            const bool is_dead_stream = call.on_piece && thrown.code() == "network-timeout";
            if (thrown.code() == "tls" && !is_broken_handshake(thrown)) { throw untrusted(thrown); }
            if (is_lost_connection(thrown)) { note_away(); }
            if (thrown.code() == "interrupted" && thrown.exit() == Exit::interrupted && !stopped_ && is_unwanted()) {
                throw not_waited_for("no answer yet");
            }
            if (!is_lost_connection(thrown) || is_dead_stream ||
                (call.one_try_after_data && call.one_try_after_data())) {
                throw;
            }
            uncertain = true;
            error = thrown;
        }
        ++failures;
        const milliseconds spent = seams_.clock.monotonic() - start;
        milliseconds wait = net::retry_delay(options_.retry, failures, std::nullopt, chance());
        wait = std::max(wait, retry_after.value_or(milliseconds(0)));
        if (spent + wait >= options_.api_timeout) {
            throw given_up(std::move(*error), call.action, spent, retry_after);
        }
        pause(wait, Outage{connection_.server, outage_reason(*error), spent, wait});
    }
}

value::Node Client::parse(const Reply& reply, const Action& action) {
    Diagnostics faults;
    auto documents = value::read_json(reply.body, "answer", faults);
    if (documents.size() != 1 || has_errors(faults) || !documents.front().root.is_mapping()) {
        throw bad_answer(action, faults.empty() ? "expected a JSON object, found something else"
                                                : "the answer is not JSON: " + faults.front().message);
    }
    return std::move(documents.front().root);
}

std::unique_ptr<Client> make_client(Connection connection, sys::Clock& clock, sys::Random& random,
                                    ClientOptions options) {
    Seams seams{[] { return std::make_unique<net::CurlHttpClient>(); }, clock, random};
    return std::make_unique<Client>(std::move(connection), std::move(seams), std::move(options));
}

}  // namespace kmm::kube
