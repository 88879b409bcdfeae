// SPDX-License-Identifier: Apache-2.0
// Requests to a Kubernetes API server that survive what an API server goes through.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "kube/credentials.hpp"
#include "kube/failure.hpp"
#include "kube/kubeconfig.hpp"
#include "kube/resource.hpp"
#include "net/http.hpp"
#include "net/retry.hpp"
#include "sys/clock.hpp"
#include "sys/random.hpp"
#include "value/node.hpp"
#include "value/object_stream.hpp"

namespace kmm::kube {

/// The API server does not answer, or answers that it cannot just now.
struct Outage {
    /// `starting`: it answers, but has just been started and may not know all roles yet: it says no to everybody.
    /// `silent`: it has taken a request and not answered it for some seconds, as when etcd has no quorum.
    enum class Kind { away, starting, silent };
    std::string server, reason;
    std::chrono::milliseconds since{};     ///< how long it has lasted
    std::chrono::milliseconds next_try{};  ///< from now; `silent`: when the request is given up
    Kind kind = Kind::away;
};

/// Called from whichever thread makes the request; empty ones are not called.
struct Observer {
    std::function<void(const Outage&)> on_outage;              ///< before every wait, and once while a request hangs
    std::function<void(std::chrono::milliseconds)> on_return;  ///< the first answer after an outage of that length
    std::function<void(std::string_view)> on_warning;          ///< a Warning header, each text once
    std::function<void(std::string_view)> on_plugin_line;      ///< standard error of a login program
};

struct ClientOptions {
    std::string field_manager = "kmm-tools";  ///< of every write
    std::chrono::milliseconds api_timeout{300'000};  ///< how long a request goes on trying in all
    std::chrono::milliseconds request_timeout{65'000};  ///< of one try; the server itself gives up after 60 s
    int attempts = 10;          ///< tries for 429 and 500; a server that is not there is tried until api_timeout
    std::size_t page_size = 500;
    net::RetryPolicy retry{10, std::chrono::milliseconds(500), std::chrono::milliseconds(15'000), 0.25};
    Observer observer;
    std::function<bool()> cancelled;  ///< asked once a second during requests; true ends them with "interrupted"
    std::function<bool()>
        stop_waiting;  ///< asked once a second; true ends waits, in wait_for and for a server that is away, with
                       ///< "interrupted", while requests go on that are answered within 5 s
    /// Called before every try of a request that is no GET. What it throws ends the request: nothing more is sent.
    std::function<void()> before_change;
    /// Those of another client of the same connection, so that a login program runs once for both; nullptr: its own.
    std::shared_ptr<Credentials> credentials;
};

/// The seams: a connection for each request that goes on at the same time, time, and chance.
struct Seams {
    std::function<std::unique_ptr<net::HttpClient>()> make_http;
    sys::Clock& clock;
    sys::Random& random;
};

/// One request as it goes over the wire.
struct Call {
    std::string method = "GET";
    std::string path;  ///< from path_of
    std::vector<std::pair<std::string, std::string>> query;
    std::string body, content_type;
    std::string accept = "application/json";
    Action action;                        ///< for messages
    std::chrono::milliseconds timeout{};  ///< of one try; 0 is the client's
    std::size_t body_max = 32U << 20U;  ///< bytes of a success without `on_piece`, decompressed: an object has 1.5 MiB
                                        ///< at most, as etcd keeps it
    /// Gets the body of a success in pieces; without it the body is in the reply. False ends the exchange.
    std::function<bool(std::string_view)> on_piece;
    /// True for failures that are an answer: they are returned at once and never tried again.
    std::function<bool(const Failure&)> is_answer;
    /// True once a connection that breaks is to end the call instead of being tried again: a watch has its own ways.
    std::function<bool()> one_try_after_data;
    std::function<bool()> cancelled;      ///< besides the client's
};

struct Reply {
    int status = 0;
    std::string body;
    std::optional<Failure> failure;  ///< set for any status that is no success
    std::optional<std::chrono::milliseconds> retry_after;  ///< of an answer that is a failure
    bool uncertain = false;          ///< an earlier try may have been carried out though no answer came
};

struct ListQuery {
    std::string namespace_;  ///< "" is all of them
    std::string label_selector, field_selector;
    enum class Content { whole, metadata } content = Content::whole;  ///< metadata: PartialObjectMetadata only
};

/// What a list was of.
struct ListMeta {
    std::string resource_version;
    std::size_t pages = 0, restarts = 0, bytes = 0;
};

enum class DryRun { no, all };
enum class Force { no, yes };  ///< take fields of other managers over
enum class Propagation { background, foreground, orphan };

struct DeleteOptions {
    std::string uid;  ///< only the object with this uid
    std::string resource_version;  ///< and only as it was then; another version is `other_uid`, too
    Propagation propagation = Propagation::background;
    std::optional<int> grace_seconds;
    DryRun dry_run = DryRun::no;
};
enum class Deletion { started, already_gone, other_uid };

/// How an eviction went. `blocked`: not now, ask again (a budget, an admission webhook, or 429 of a busy server);
/// `several_budgets`: never, the API server refuses pods that more than one budget selects; `namespace_ending`: go on
/// waiting; `gone`: there is no such pod.
struct Eviction {
    enum class Outcome { evicted, gone, blocked, several_budgets, namespace_ending } outcome = Outcome::evicted;
    std::string reason;  ///< of a block, in the server's words: the budget, how many it needs and has; a webhook's
    std::optional<std::chrono::milliseconds> retry_after;
};

/// Thread safe. Every request:
///   is sent again when the server cannot be reached, closes the connection or breaks TLS off, for `api_timeout`;
///   waits for Retry-After (or longer each time) after 429 and 5xx, `attempts` times at most, for `api_timeout` after
///   502, 503 and 504; reads the token again, or runs the login program again, once after 401; asks again after a
///   missing right while the server is starting (judge); never follows a redirect.
/// Errors: those of to_error; unavailable 69 "api-unreachable", "bad-answer"; integrity "tls"; those of Credentials;
/// interrupted 130 "interrupted".
class Client {
public:
    /// Nothing is sent yet. The clock and random of `seams` must outlive the client.
    Client(Connection connection, Seams seams, ClientOptions options = {});
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    [[nodiscard]] const Connection& connection() const noexcept { return connection_; }
    [[nodiscard]] const ClientOptions& options() const noexcept { return options_; }
    /// For ClientOptions::credentials of another one.
    [[nodiscard]] const std::shared_ptr<Credentials>& credentials() const noexcept { return credentials_; }
    [[nodiscard]] sys::Clock& clock() const noexcept { return seams_.clock; }
    /// From [0, 1).
    [[nodiscard]] double chance();

    // Reading.
    [[nodiscard]] value::Node get(const Resource& resource, const Key& key);
    /// nullopt if there is no such object, or the kind is not served.
    [[nodiscard]] std::optional<value::Node> find(const Resource& resource, const Key& key);
    /// Pages of `page_size`, parsed object by object; at most one page is in memory. `make_sink` is called before the
    /// first page, and again when the list must start anew (410 Expired): what earlier sinks got is void then. A sink
    /// gets every page as a document. Objects come in the order of the server: by namespace and name.
    ListMeta list(const Resource& resource, const ListQuery& query,
                  const std::function<value::ObjectSink&()>& make_sink);
    /// All of them in memory, but what `shape` leaves out (nullptr: metadata.managedFields).
    [[nodiscard]] std::vector<value::Node> list_all(const Resource& resource, const ListQuery& query,
                                                    ListMeta* meta = nullptr, const value::Shape* shape = nullptr);

    // What the server knows.
    /// True if the server has this kind in this version. Asked once for each group and version.
    [[nodiscard]] bool serves(const Resource& resource);
    /// What the server has is asked for anew by the next `serves`.
    void forget_served();
    /// The resource with the version that the server prefers among those that have it; nullopt if none has.
    [[nodiscard]] std::optional<Resource> discover(const Resource& resource);
    /// "v1.34.1".
    [[nodiscard]] std::string server_version();

    // Writing. Unknown and duplicate fields are refused by the server (fieldValidation=Strict).
    /// An object that is there already is an error, unless a lost answer of this very call may have made it.
    value::Node create(const Resource& resource, const value::Node& object, DryRun dry_run = DryRun::no);
    /// Server-side apply. Errors: "field-conflict" unless forced.
    value::Node apply(const Resource& resource, const value::Node& object, Force force, DryRun dry_run = DryRun::no,
                      std::string_view subresource = "");
    /// RFC 6902. A `test` that fails is "conflict".
    value::Node json_patch(const Resource& resource, const Key& key, const value::Node& operations,
                           std::string_view subresource = "", DryRun dry_run = DryRun::no);
    /// RFC 7386. With metadata.resourceVersion in it an object that changed meanwhile is "conflict".
    value::Node merge_patch(const Resource& resource, const Key& key, const value::Node& patch,
                            std::string_view subresource = "", DryRun dry_run = DryRun::no);
    /// Writes the whole object; its metadata.resourceVersion must be set, so that it can only replace what was read.
    value::Node replace(const Resource& resource, const value::Node& object, std::string_view subresource = "");
    /// Reads the object, asks `decide` for a merge patch (nullopt: nothing to do) and sends it together with the
    /// resourceVersion that was read. After a conflict it reads and asks again, five times in all, with growing pauses.
    /// Returns the object as it is now. Errors: "conflict" if it still loses.
    value::Node change(const Resource& resource, const Key& key,
                       const std::function<std::optional<value::Node>(const value::Node& current)>& decide,
                       std::string_view subresource = "");
    Deletion remove(const Resource& resource, const Key& key, const DeleteOptions& options = {});
    /// policy/v1. Any 429 is an answer, and is not tried again here: whoever drains has the time. With `uid` only the
    /// Pod that has it: one of the same name that came meanwhile stays, and the answer is `gone`.
    Eviction evict(const Key& pod, std::optional<int> grace_seconds = std::nullopt, DryRun dry_run = DryRun::no,
                   const std::string& uid = "");
    /// POSTs a question that changes nothing (access reviews) and returns the answer.
    value::Node ask(const Resource& resource, const value::Node& question);

    /// What a refusal is worth. `stands`: the server knows all roles, as far as it lets us see. `again`: it does not,
    /// and some time has been waited, or it does only since; ask again. `unsure`: it has not become ready in 30 s.
    enum class Verdict { stands, again, unsure };
    /// A server that has just been started says no to everybody: its /readyz tells. 30 s at most; where nobody may read
    /// that, 5 s; where there is none, until 30 s after the server was away. `knew_roles`: knows_roles() before the
    /// refused request was sent; `since`: when it, or its like, was refused first; `reason` is what is said while
    /// waiting. Errors: interrupted "interrupted".
    [[nodiscard]] Verdict judge(bool knew_roles, std::chrono::milliseconds since, const std::string& reason);
    /// True if the server was seen to be ready in the last 10 s and not away since.
    [[nodiscard]] bool knows_roles() const;

    /// How long later requests go on trying; to be set while there is none under way.
    void set_api_timeout(std::chrono::milliseconds timeout) noexcept { options_.api_timeout = timeout; }

    /// Ends requests that are under way, from any thread, and refuses all later ones: "interrupted".
    void stop() noexcept { stopped_ = true; }

    // The wire.
    /// Sends with all the rules above. Failures that are no `is_answer` are thrown.
    Reply exchange(const Call& call);
    /// The one JSON document of a body. Errors: "bad-answer".
    [[nodiscard]] static value::Node parse(const Reply& reply, const Action& action);

private:
    /// `has_data` is looked at for as long as the request is under way.
    [[nodiscard]] net::Request request_of(const Call& call, std::uint64_t& generation, const bool& has_data);
    [[nodiscard]] std::unique_ptr<net::HttpClient> borrow();
    void give_back(std::unique_ptr<net::HttpClient> http);
    [[nodiscard]] net::Response send(const Call& call, Reply& reply, std::uint64_t& generation);
    enum class Readiness { ready, starting, hidden, unknown };
    [[nodiscard]] Readiness readiness();
    void note_away();
    void note_warnings(const net::Response& response);
    void pause(std::chrono::milliseconds wait, const Outage& outage);
    [[nodiscard]] bool is_unwanted() const { return options_.stop_waiting && options_.stop_waiting(); }
    /// What a wait for this server ends with once is_unwanted().
    [[nodiscard]] Error not_waited_for(const std::string& reason) const;
    /// What exchange() ends with after `spent`, when the next try, perhaps after the `retry_after` of the server, comes
    /// after the api_timeout.
    [[nodiscard]] Error given_up(Error error, const Action& action, std::chrono::milliseconds spent,
                                 std::optional<std::chrono::milliseconds> retry_after) const;
    value::Node write(Call call, const Resource& resource, const Key& key, std::string_view subresource,
                      DryRun dry_run);

    Connection connection_;
    Seams seams_;
    ClientOptions options_;
    std::shared_ptr<Credentials> credentials_;
    std::mutex mutex_;
    std::atomic<bool> stopped_{false};
    std::atomic<std::int64_t> away_ms_{-1};  ///< when the server was away last, on the monotonic clock
    std::atomic<std::int64_t> ready_ms_{-1};  ///< when it was seen to be ready last, if it was not away since
    std::vector<std::unique_ptr<net::HttpClient>> idle_;
    std::set<std::string, std::less<>> warned_;
    std::map<std::string, std::set<std::string>, std::less<>> served_;  ///< group and version to plurals
};

/// A client over libcurl and the system's clock; both `clock` and `random` must outlive it.
[[nodiscard]] std::unique_ptr<Client> make_client(Connection connection, sys::Clock& clock, sys::Random& random,
                                                  ClientOptions options = {});

}  // namespace kmm::kube
