// SPDX-License-Identifier: Apache-2.0
// What is said when the time of a pull is up, or would be before the next try: row M60 of docs/hostile-registries.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "image/manifest.hpp"
#include "registry/client/request.hpp"
#include "registry/pull/puller.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A server whose answers are a function of the request and of how many came before.
class ScriptedClient final : public net::HttpClient {
public:
    using Answer = std::function<net::Response(const net::Request&, int before)>;
    explicit ScriptedClient(Answer answer) : answer_(std::move(answer)) {}
    [[nodiscard]] net::Response send(const net::Request& request, const net::BodySink& sink) override {
        timeouts.push_back(request.timeout);
        if (request.cancelled && request.cancelled()) {
            throw Error(Exit::interrupted, "interrupted", "the request was interrupted").detail("url", request.url);
        }
        net::Response response = answer_(request, tries++);
        if (response.status == 200) {
            static_cast<void>(sink(response, body));
        }
        return response;
    }
    std::string body;  ///< of answers 200
    int tries = 0;
    std::vector<milliseconds> timeouts;

private:
    Answer answer_;
};

net::Response reply(int status, const std::string& name = {}, const std::string& value = {}) {
    net::Response made;
    made.status = status;
    if (!name.empty()) {
        made.headers.emplace_back(name, value);
    }
    return made;
}

Error refused() {
    return Error(Exit::unavailable, "network", "connection refused").detail("url", "https://reg.test/v2/").retryable();
}

/// What a pull within `allowed` ends with.
Outcome pull_within(milliseconds allowed, ScriptedClient& http, TestClock& clock,
                    const std::function<void(registry::PullRequest&)>& tweak = nullptr) {
    const sys::TempDir out("kmm-test-");
    registry::PullRequest request;
    request.reference = "reg.test/team/driver:v1";
    request.kernels = {k_kernel};
    request.deadline = allowed;
    if (tweak) {
        tweak(request);
    }
    Outcome outcome;
    try {
        outcome.result = registry::pull(request, out.path(), http, clock);
    } catch (const Error& error) {
        outcome.error = error;
    }
    return outcome;
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("M60 a pull whose time is up says what the last try said, and how many there were") {
    TestClock clock;
    ScriptedClient http([&](const net::Request&, int) -> net::Response {
        clock.sleep_for(seconds(4));  // as long as it takes to fail
        throw refused();
    });
    const Outcome outcome = pull_within(seconds(10), http, clock);
    CHECK(outcome.code() == "pull-timeout");
    CHECK(outcome.exit() == Exit::timeout);
    CHECK(http.tries == 3);
    CHECK(outcome.detail("tries") == "3");
    CHECK(outcome.detail("last") == "connection refused");
}

TEST_CASE("M60 the try that the end of the time cuts off counts, and so does what came before it") {
    TestClock clock;
    ScriptedClient http([&](const net::Request& request, int before) -> net::Response {
        if (before == 0) {
            return reply(503);
        }
        clock.sleep_for(request.timeout);
        throw Error(Exit::timeout, "network-timeout", "no complete answer within 9s")
            .detail("url", "https://reg.test/v2/team/driver/manifests/v1");
    });
    const Outcome outcome = pull_within(seconds(10), http, clock);
    CHECK(outcome.code() == "pull-timeout");
    CHECK(outcome.detail("tries") == "2");
    CHECK(outcome.detail("last") == "the registry reg.test answered 503");
    CHECK(outcome.detail("url") == "https://reg.test/v2/team/driver/manifests/v1");
}

TEST_CASE("M60 a failure before a success does not explain a pull whose time is up") {
    TestClock clock;
    ScriptedClient http([&](const net::Request& request, int before) -> net::Response {
        if (before == 0) {
            throw refused();
        }
        if (before == 1) {
            return reply(200, "content-type", std::string(image::k_oci_index));
        }
        clock.sleep_for(request.timeout);
        throw Error(Exit::timeout, "network-timeout", "no complete answer within 9s");
    });
    http.body =
        R"({"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" +
        sha256("x") + R"(","size":1,"platform":{"os":"linux","architecture":"amd64"}}]})";
    const Outcome outcome = pull_within(seconds(10), http, clock);
    CHECK(outcome.code() == "pull-timeout");
    CHECK(http.tries == 3);
    CHECK(outcome.detail("tries").empty());
    CHECK(outcome.detail("last").empty());
}

TEST_CASE("M60 a wait that is asked for and does not fit is reported with the failure") {
    for (const int status : {429, 503}) {
        TestClock clock;
        ScriptedClient http([&](const net::Request&, int) { return reply(status, "retry-after", "120"); });
        const Outcome outcome = pull_within(seconds(30), http, clock);
        CHECK(outcome.code() == "registry-error");
        CHECK(outcome.exit() == Exit::unavailable);
        CHECK(outcome.error->is_retryable());
        CHECK(outcome.detail("wait") == "asked to wait 2m0s, 30.0s are left");
        CHECK(outcome.detail("tries") == "1");
        CHECK(outcome.error->hint() == "--timeout allows more; or run the same command again later");
    }
    TestClock clock;
    ScriptedClient http([&](const net::Request&, int) -> net::Response { throw refused(); });
    const Outcome own = pull_within(milliseconds(100), http, clock);
    CHECK(own.code() == "network");
    CHECK(own.detail("wait").empty());
    CHECK(own.detail("tries") == "1");
    CHECK(own.error->hint() == "--timeout allows more; or run the same command again later");
}

TEST_CASE("no request is allowed more time than the pull has, nor any when that has just run out") {
    for (const int slow : {6, 11}) {
        TestClock clock;
        ScriptedClient http([&](const net::Request& request, int) -> net::Response {
            clock.sleep_for(std::min<milliseconds>(request.timeout, seconds(slow)));
            return request.url.find("/token") == std::string::npos
                       ? reply(401, "www-authenticate", R"(Bearer realm="https://reg.test/token")")
                       : reply(302, "location", "https://reg.test/token?again");
        });
        const Outcome outcome = pull_within(seconds(10), http, clock);
        CHECK(outcome.code() == "pull-timeout");
        CHECK(clock.slept == seconds(11));
        for (const milliseconds timeout : http.timeouts) {
            CHECK(timeout.count() > 0);
        }
    }
}

TEST_CASE("whatever a pull waits for, it can be interrupted") {
    for (const int at : {1, 2, 3}) {
        TestClock clock;
        ScriptedClient http([&](const net::Request& request, int) {
            return request.url.ends_with("/v2/")
                       ? reply(404)
                       : reply(401, "www-authenticate", R"(Bearer realm="https://reg.test/token")");
        });
        const Outcome outcome = pull_within(seconds(10), http, clock, [&](auto& request) {
            request.tls.insecure = true;
            request.cancelled = [&] {
                return static_cast<int>(http.timeouts.size()) == at;
            };  // the first looks for TLS, the third for a token
        });
        CAPTURE(at);
        CHECK(outcome.code() == "interrupted");
        CHECK(outcome.exit() == Exit::interrupted);
        CHECK(outcome.message() == "interrupted while pulling; nothing was changed");
        CHECK(static_cast<int>(http.timeouts.size()) == at);
    }
}

}
