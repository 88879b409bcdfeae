// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>

#include "base/error.hpp"
#include "net/http.hpp"
#include "net/tls_words.hpp"
#include "support/fake_server.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

net::Request request_to(const FakeServer& server, const std::string& path = "/") {
    net::Request request;
    request.url = "http://127.0.0.1:" + std::to_string(server.port()) + path;
    return request;
}

/// Sends and returns the error, or fails.
Error error_of(net::CurlHttpClient& http, const net::Request& request, const net::BodySink& sink = nullptr) {
    try {
        static_cast<void>(http.send(request, sink));
    } catch (const Error& error) {
        return error;
    }
    FAIL("expected an error");
    return bug("unreachable");
}

}  // namespace

TEST_SUITE("net::unit") {

TEST_CASE("an exchange, with everything that was sent and received") {
    FakeServer server([](const FakeRequest& request) {
        FakeReply reply;
        reply.status = 404;
        reply.headers = {{"X-One", " a "}, {"x-one", "b"}, {"Location", "/elsewhere"}};
        reply.body = request.method + " " + request.body;
        return reply;
    });
    net::CurlHttpClient http;
    net::Request request = request_to(server, "/x?y");
    request.method = "POST";
    request.body = "payload";
    request.headers = {{"X-Mine", "1"}};
    std::string body;
    const net::Response response = http.send(request, [&](const net::Response& head, std::string_view piece) {
        CHECK(head.status == 404);
        body += piece;
        return true;
    });
    CHECK(body == "POST payload");
    CHECK(response.status == 404);
    CHECK(response.header("x-one") == "a");
    CHECK(response.all_headers("x-one") == std::vector<std::string>{"a", "b"});
    CHECK_FALSE(response.header("absent").has_value());
    CHECK(response.peer_address == "127.0.0.1");
    REQUIRE(server.requests().size() == 1);
    const FakeRequest seen = server.requests()[0];
    CHECK(seen.target == "/x?y");
    CHECK(seen.header("x-mine") == "1");
    CHECK(seen.header("accept-encoding") == "identity");
    CHECK(seen.header("user-agent").starts_with("kmm-tools/"));
}

TEST_CASE("redirects are the caller's business") {
    FakeServer server([](const FakeRequest&) {
        FakeReply reply;
        reply.status = 302;
        reply.headers = {{"Location", "/again"}};
        return reply;
    });
    net::CurlHttpClient http;
    CHECK(http.send(request_to(server), nullptr).header("location") == "/again");
    CHECK(server.requests().size() == 1);
}

TEST_CASE("a sink can stop, and its errors come through") {
    FakeServer server([](const FakeRequest&) {
        FakeReply reply;
        reply.body = std::string(4U << 20U, 'x');
        return reply;
    });
    net::CurlHttpClient http;
    std::size_t pieces = 0;
    CHECK(http.send(request_to(server), [&](const net::Response&, std::string_view) { return ++pieces < 2; }).status ==
          200);
    CHECK(pieces == 2);
    const Error error = error_of(http, request_to(server), [](const net::Response&, std::string_view) -> bool {
        throw Error(Exit::io, "mine", "from the sink");
    });
    CHECK(error.code() == "mine");
}

TEST_CASE("failures are classified") {
    net::CurlHttpClient http;
    FakeServer cut([](const FakeRequest&) {
        FakeReply reply;
        reply.body = "half";
        reply.announced_length = 100;
        return reply;
    });
    const Error early = error_of(http, request_to(cut, "/x?token=secret"));
    CHECK(early.code() == "network");
    CHECK(early.exit() == Exit::unavailable);
    CHECK(early.is_retryable());
    REQUIRE(!early.details().empty());
    CHECK(early.details()[0].second.find("secret") == std::string::npos);
    net::Request nobody;
    {
        FakeServer gone([](const FakeRequest&) { return FakeReply{}; });
        nobody = request_to(gone);
    }
    CHECK(error_of(http, nobody).code() == "network");
    nobody.url = "http://name.invalid/";
    CHECK(error_of(http, nobody).code() == "network");
    CHECK(error_of(http, nobody).code() == "network");  // on a handle whose last request never connected
    for (const char* url : {"ftp://127.0.0.1/", "file:///etc/passwd", "http://u:p@127.0.0.1/", "nothing"}) {
        nobody.url = url;
        CHECK(error_of(http, nobody).code() == "bad-url");
    }
    FakeServer talker([](const FakeRequest&) {
        FakeReply reply;
        reply.headers = {{"X-Long", std::string(200'000, 'x')}};
        return reply;
    });
    const Error endless = error_of(http, request_to(talker));
    CHECK(endless.message() == "a header of the answer is too long, or memory is short");
    CHECK_FALSE(endless.is_retryable());
    net::Request split = request_to(cut);
    split.headers = {{"X", "a\r\nEvil: 1"}};
    CHECK(error_of(http, split).exit() == Exit::data);
}

TEST_CASE("the whole exchange has a limit in time") {
    FakeServer slow([](const FakeRequest&) {
        ::timespec pause{0, 400'000'000};
        ::nanosleep(&pause, nullptr);
        return FakeReply{};
    });
    net::CurlHttpClient http;
    net::Request request = request_to(slow);
    request.timeout = std::chrono::milliseconds(100);
    const Error error = error_of(http, request);
    CHECK(error.code() == "network-timeout");
    CHECK(error.exit() == Exit::timeout);
}

TEST_CASE("M60 a server that sends a byte now and then is given up") {
    FakeServer slow([](const FakeRequest&) {
        FakeReply reply;
        reply.body = std::string(40, 'x');
        reply.drip_ms = 100;
        return reply;
    });
    net::CurlHttpClient http;
    net::Request request = request_to(slow);
    request.stall_window = std::chrono::seconds(1);
    const Error error = error_of(http, request, [](const net::Response&, std::string_view) { return true; });
    CHECK(error.code() == "network");
    CHECK(error.is_retryable());
    CHECK(request_to(slow).stall_window == std::chrono::seconds(30));
}

TEST_CASE("a server that sends nothing at all is given up in plain words") {
    FakeServer silent([](const FakeRequest&) {
        ::timespec pause{4, 0};
        ::nanosleep(&pause, nullptr);
        return FakeReply{};
    });
    net::CurlHttpClient http;
    net::Request request = request_to(silent);
    request.stall_bytes_per_second = 1;
    request.stall_window = std::chrono::seconds(1);
    const Error error = error_of(http, request);
    CHECK(error.code() == "network");
    CHECK(error.message() == "no more data for 1.0s");
    CHECK(error.is_retryable());
}

TEST_CASE("the proxies of the environment, and the hosts that are exempt") {
    FakeServer proxy([](const FakeRequest&) {
        FakeReply reply;
        reply.body = "by proxy";
        return reply;
    });
    FakeServer direct([](const FakeRequest&) { return FakeReply{}; });
    ::setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
    net::CurlHttpClient http;
    net::Request request;
    request.url = "http://registry.invalid/v2/";  // only the proxy would know where that is
    CHECK(http.send(request, nullptr).status == 200);
    REQUIRE(proxy.requests().size() == 1);
    CHECK(proxy.requests()[0].target == "http://registry.invalid/v2/");
    const std::string port = std::to_string(direct.port());
    std::size_t asked = 0;
    for (const std::string& exceptions : std::vector<std::string>{"127.0.0.1,.invalid", "registry.invalid 127.0.0.0/8",
                                                                  "127.0.0.1:" + port + ",registry.invalid:80"}) {
        CAPTURE(exceptions);
        ::setenv("NO_PROXY", exceptions.c_str(), 1);
        CHECK(http.send(request_to(direct, "/x"), nullptr).status == 200);
        CHECK(direct.requests().size() == ++asked);
        CHECK(error_of(http, request).code() == "network");
        CHECK(proxy.requests().size() == 1);
    }
    ::setenv("NO_PROXY", "127.0.0.1:1,registry.invalid:5000", 1);
    CHECK(http.send(request, nullptr).status == 200);
    CHECK(http.send(request_to(direct, "/x"), nullptr).status == 200);
    CHECK(proxy.requests().size() == 3);
    CHECK(direct.requests().size() == asked);
    ::unsetenv("NO_PROXY");
    ::unsetenv("http_proxy");
}

TEST_CASE("the address of a proxy is never shown: it may hold a password") {
    for (const char* proxy : {"http://user:s3cret@host:99999", "http://user:s3c ret@host", "foo://user:s3cret@host:1",
                              "http://user:s3cret@[::", "http://user:1/s3cret@host:1", "http://user:1@s3c/ret@host:1",
                              "http://s3c?ret@host:1", "s3c#ret@host:1"}) {
        ::setenv("http_proxy", proxy, 1);
        net::CurlHttpClient http;
        net::Request request;
        request.url = "http://registry.invalid/v2/";
        try {
            static_cast<void>(http.send(request, nullptr));
            FAIL("expected an error");
        } catch (const Error& error) {
            CHECK(error.code() == "network");
            CHECK_FALSE(error.is_retryable());
            CHECK(error.message().find("proxy") != std::string::npos);
            CHECK(error.message().find("s3c") == std::string::npos);
            CHECK_FALSE(error.hint().empty());
        }
        ::unsetenv("http_proxy");
    }
}

TEST_CASE("what is wrong with the TLS of a proxy is not told of the server behind it") {
    for (const bool speaks_tls : {false, true}) {
        FakeServer proxy([](const FakeRequest&) { return FakeReply{}; },
                         speaks_tls ? std::optional(make_identity()) : std::nullopt);
        const std::string name = "127.0.0.1:" + std::to_string(proxy.port());
        ::setenv("https_proxy", ("https://user:s3cret@" + name).c_str(), 1);
        net::CurlHttpClient http;
        net::Request request;
        request.url = "https://registry.invalid/v2/";
        request.tls.insecure = true;  // the registry, not the proxy
        try {
            static_cast<void>(http.send(request, nullptr));
            FAIL("expected an error");
        } catch (const Error& error) {
            CHECK(error.code() == "tls");
            CHECK(error.message().starts_with("TLS with the proxy " + name + ": "));
            CHECK(error.hint().find("--insecure") == std::string::npos);
        }
        ::unsetenv("https_proxy");
    }
}

TEST_CASE("an answer that is no TLS is known") {
    CHECK_FALSE(net::speaks_tls("OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number"));
    CHECK(net::speaks_tls("SSL certificate problem: certificate has expired"));
}

TEST_CASE("what a proxy refuses is told as its answer") {
    FakeServer proxy([](const FakeRequest& request) {
        FakeReply reply;
        reply.status = request.target.find("away") != std::string::npos ? 503 : 407;
        return reply;
    });
    const std::string name = "127.0.0.1:" + std::to_string(proxy.port());
    ::setenv("https_proxy", ("http://user:s3cret@" + name + "/").c_str(), 1);
    ::setenv("http_proxy", ("user:s3cret@" + name).c_str(), 1);
    net::CurlHttpClient http;
    net::Request request;
    request.url = "https://registry.invalid/v2/";
    const Error login = error_of(http, request);
    CHECK(login.code() == "network");
    CHECK_FALSE(login.is_retryable());
    CHECK(login.message() == "the proxy " + name + " answered 407 where a connection was expected");
    CHECK(login.hint().find("wants a login") != std::string::npos);
    request.url = "https://away.invalid/v2/";
    const Error away = error_of(http, request);
    CHECK(away.is_retryable());
    CHECK(away.message() == "the proxy " + name + " answered 503 where a connection was expected");
    request.url = "http://away.invalid/v2/";  // the proxy or who is behind it: nobody can tell
    const net::Response either = http.send(request, nullptr);
    CHECK(either.status == 503);
    CHECK(either.proxy == name);
    CHECK(net::speaker(either, "the registry") == "the proxy " + name + ", or the registry behind it,");
    CHECK(net::speaker(net::Response{}, "the registry") == "the registry");
    ::setenv("http_proxy", "http://user:s3cret@127.0.0.1:1", 1);  // nobody is there
    const Error gone = error_of(http, request);
    CHECK(std::any_of(gone.details().begin(), gone.details().end(), [](const auto& detail) {
        return detail == std::pair<std::string, std::string>("proxy", "127.0.0.1:1");
    }));
    ::unsetenv("https_proxy");
    ::unsetenv("http_proxy");
}

TEST_CASE("M57 through a proxy a name that leads inwards is refused, unless who sent us there is there, too") {
    FakeServer proxy([](const FakeRequest&) { return FakeReply{}; });
    ::setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
    net::CurlHttpClient http;
    const auto ask = [&](const std::string& host, net::AddressScope scope_max, const std::string& referred_by) {
        net::Request request;
        request.url = "http://" + host + "/blob";
        request.scope_max = scope_max;
        request.referred_by = referred_by;
        return request;
    };
    for (const char* inward : {"localhost", "127.0.0.1", "[::1]", "169.254.169.254", "10.1.2.3"}) {
        CAPTURE(inward);
        const Error error = error_of(http, ask(inward, net::AddressScope::global, "registry.invalid"));
        CHECK(error.code() == "address-refused");
        CHECK(error.exit() == Exit::no_permission);
    }
    CHECK(error_of(http, ask("169.254.169.254", net::AddressScope::global, "localhost")).code() == "address-refused");
    CHECK(proxy.requests().empty());
    const net::Response same_side = http.send(ask("localhost", net::AddressScope::global, "127.0.0.1"), nullptr);
    CHECK(same_side.status == 200);
    CHECK(same_side.peer_address.empty());  // it is the proxy's, and says nothing about the registry
    CHECK(http.send(ask("10.1.2.3", net::AddressScope::site, "registry.invalid"), nullptr).status == 200);
    CHECK(http.send(ask("storage.invalid", net::AddressScope::global, "registry.invalid"), nullptr).status ==
          200);  // known to the proxy alone
    CHECK(proxy.requests().size() == 3);
    ::unsetenv("http_proxy");
}

}
