// SPDX-License-Identifier: Apache-2.0
// Blobs on the wire: rows M02 to M09, and retries (M60), of docs/hostile-registries.md.
#include <doctest/doctest.h>

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

/// An incompressible tar, so that the blob is as long as it looks.
std::string big_tar() {
    std::string noise(600'000, '\0');
    std::uint32_t state = 7;
    for (char& c : noise) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<char>(state >> 24U);
    }
    return TarBuilder().file(k_modules + "/big.ko", noise).finish();
}

/// A registry with one image of one layer; `spoil` may change the answers for that layer. `tries` counts them from 1.
struct Scene {
    FakeRegistry registry;
    TestLayer layer = plain_layer(big_tar());
    int tries = 0;

    explicit Scene(std::function<void(int tries, const FakeRequest&, FakeReply&)> spoil) {
        registry.add_image("v1", {layer});
        registry.intercept = [this, spoil = std::move(spoil)](const FakeRequest& request) -> std::optional<FakeReply> {
            if (request.target.find(sha256(layer.bytes)) == std::string::npos) {
                return std::nullopt;
            }
            FakeReply reply = registry.usual(request);
            spoil(++tries, request, reply);
            return reply;
        };
    }
    [[nodiscard]] std::vector<std::string> ranges() {
        std::vector<std::string> result;
        for (const FakeRequest& request : registry.server().requests()) {
            if (request.target.find(sha256(layer.bytes)) != std::string::npos) {
                result.push_back(request.header("range"));
            }
        }
        return result;
    }
};

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("the next layer is on its way while one is extracted, and given up when that fails") {
    std::string bulk(1U << 20U, 'x');
    const auto layer_of = [&](const std::string& name) {
        return gzip_layer(TarBuilder().file(k_modules + "/" + name, bulk).finish());
    };
    const std::vector<TestLayer> layers{layer_of("a.ko"), layer_of("b.ko"), layer_of("c.ko"), layer_of("a.ko")};
    const Outcome whole = pull_layers(layers);
    REQUIRE_MESSAGE(!whole.error, whole.message());
    CHECK(whole.files.size() == 3);
    CHECK(whole.result.bytes_downloaded ==
          layers[0].bytes.size() + layers[1].bytes.size() + layers[2].bytes.size() + layers[3].bytes.size());

    // The second layer would drip for minutes; the first one is none.
    FakeRegistry registry;
    TestLayer broken = layers[0];
    broken.bytes[0] ^= 1;
    registry.add_image("v1", {broken, layers[1]});
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find(sha256(layers[1].bytes)) == std::string::npos) return std::nullopt;
        FakeReply reply = registry.usual(request);
        reply.drip_ms = 100;
        return reply;
    };
    const auto start = std::chrono::steady_clock::now();
    const Outcome failed = pull_from(registry);
    CHECK(failed.code() == "bad-layer");
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("M02 a blob of the right size with a wrong byte is fetched once more, then refused") {
    Scene always([](int, const FakeRequest&, FakeReply& reply) { reply.body[1000] ^= 1; });
    const Outcome refused = pull_from(always.registry);
    CHECK(refused.code() == "digest-mismatch");
    CHECK(refused.exit() == Exit::integrity);
    CHECK(refused.detail("expected") == sha256(always.layer.bytes));
    CHECK(refused.detail("found").substr(0, 7) == "sha256:");
    CHECK(always.tries == 2);
    Scene once([](int tries, const FakeRequest&, FakeReply& reply) {
        if (tries == 1) {
            reply.body[1000] ^= 1;
        }
    });
    CHECK(pull_from(once.registry).code() == "ok");
    CHECK(once.ranges() == std::vector<std::string>{"", ""});
}

TEST_CASE("M03 a blob that ends early is resumed, then refused") {
    Scene scene([](int, const FakeRequest&, FakeReply& reply) {
        reply.body = reply.status == 200 ? reply.body.substr(0, 1000) : std::string();
        reply.announced_length.reset();
    });
    const Outcome outcome = pull_from(scene.registry);
    CHECK(outcome.code() == "size-mismatch");
    CHECK(outcome.exit() == Exit::integrity);
    CHECK(scene.ranges() == std::vector<std::string>{"", "bytes=1000-"});
    // A store that has no more says so.
    Scene refusing([](int, const FakeRequest&, FakeReply& reply) {
        const bool rest = reply.status != 200;
        reply.body = rest ? std::string() : reply.body.substr(0, 1000);
        reply.status = rest ? 416 : 200;
        reply.announced_length.reset();
    });
    CHECK(pull_from(refusing.registry).message().find("found only 1000") != std::string::npos);
}

TEST_CASE("M04 a blob that does not end") {
    Scene scene([](int, const FakeRequest&, FakeReply& reply) { reply.body += std::string(4U << 20U, 'x'); });
    const Outcome outcome = pull_from(scene.registry);
    CHECK(outcome.code() == "size-mismatch");
    CHECK(outcome.exit() == Exit::integrity);
    CHECK(scene.tries == 1);
}

TEST_CASE("M05 a content length that lies does not matter if the bytes are right") {
    Scene smaller([](int tries, const FakeRequest&, FakeReply& reply) {
        if (tries == 1) {
            reply.announced_length = 5000;
        }
    });
    const Outcome resumed = pull_from(smaller.registry);
    CHECK_MESSAGE(!resumed.error, resumed.message());
    CHECK(resumed.warned("content-length"));
    Scene larger([](int, const FakeRequest&, FakeReply& reply) { reply.announced_length = reply.body.size() + 100; });
    const Outcome complete = pull_from(larger.registry);
    CHECK_MESSAGE(!complete.error, complete.message());
    CHECK(complete.warned("content-length"));
    CHECK(larger.tries == 1);
}

TEST_CASE("M06 a connection reset in the middle is resumed") {
    Scene scene([](int tries, const FakeRequest&, FakeReply& reply) {
        if (tries <= 2) {
            reply.reset_after = 200'000;
        }
    });
    const Outcome outcome = pull_from(scene.registry);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/big.ko").size() == 600'000);
    const auto ranges = scene.ranges();
    REQUIRE(ranges.size() == 3);
    CHECK(ranges[1].starts_with("bytes="));
    CHECK(outcome.sleeps.size() == 2);
    Scene hopeless([](int, const FakeRequest&, FakeReply& reply) { reply.reset_after = 0; });
    const Outcome failed = pull_from(hopeless.registry);
    CHECK(failed.code() == "network");
    CHECK(failed.exit() == Exit::unavailable);
    CHECK(hopeless.tries == 5);
}

TEST_CASE("M07 a server that ignores ranges") {
    Scene scene([](int tries, const FakeRequest&, FakeReply& reply) {
        if (tries == 1) {
            reply.reset_after = 200'000;
        } else {
            reply.status = 200;
            reply.headers.clear();
            reply.body = plain_layer(big_tar()).bytes;
        }
    });
    CHECK(pull_from(scene.registry).code() == "ok");
    CHECK(scene.tries == 2);
}

TEST_CASE("M08 another range than asked for") {
    const auto wrong = [](const std::string& range) {
        return [range](int tries, const FakeRequest&, FakeReply& reply) {
            if (tries == 1) {
                reply.reset_after = 200'000;
            } else if (reply.status == 206) {
                reply.headers = {{"Content-Range", range}};
            }
        };
    };
    for (const char* range : {"bytes 0-9/600000", "bytes 200000-1/5", "bytes 1-2/*", "items 1-2/3", ""}) {
        CAPTURE(range);
        Scene scene(wrong(range));
        CHECK(pull_from(scene.registry).code() == "ok");  // discarded, then everything from the start
        CHECK(scene.tries == 3);
    }
    Scene twice([](int, const FakeRequest& request, FakeReply& reply) {
        if (request.header("range").empty()) {
            reply.reset_after = 200'000;
        } else {
            reply.headers = {{"Content-Range", "bytes 7-8/9"}};
        }
    });
    const Outcome outcome = pull_from(twice.registry);
    CHECK(outcome.code() == "size-mismatch");
    CHECK(outcome.exit() == Exit::integrity);
}

TEST_CASE("a login page in the place of a blob is the doing of a proxy, and the image is as it was pushed") {
    Scene scene([](int, const FakeRequest&, FakeReply& reply) {
        reply.body = "\n<!DOCTYPE html><title>Sign in</title>";
        reply.announced_length.reset();
    });
    const Outcome outcome = pull_from(scene.registry);
    CHECK(outcome.code() == "registry-error");
    CHECK(outcome.exit() == Exit::unavailable);
    CHECK(outcome.message().find("found an HTML page") != std::string::npos);
    CHECK(outcome.error->hint() == image::k_other_server_hint);
}

TEST_CASE("M09 a connection that breaks after the last byte") {
    Scene scene([](int, const FakeRequest&, FakeReply& reply) {
        reply.announced_length =
            reply.body.size() + 1;  // it is closed, not reset: a reset may overtake bytes that nobody has read
    });
    CHECK(pull_from(scene.registry).code() == "ok");
    CHECK(scene.tries == 1);
    Scene refused([](int tries, const FakeRequest&, FakeReply& reply) {
        if (tries == 1) {
            reply.reset_after = 200'000;
        } else if (tries == 2) {
            reply = FakeReply{};
            reply.status = 416;
        }
    });
    CHECK(pull_from(refused.registry).code() == "ok");
}

TEST_CASE("M58 what the storage behind a redirect refuses is not told as the registry's word") {
    int status = 403;
    FakeServer storage{[&](const FakeRequest&) {
        FakeReply reply;
        reply.status = status;
        return reply;
    }};
    FakeRegistry registry;
    registry.add_image("v1", {plain_layer(big_tar())});
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find("/blobs/") == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply;
        reply.status = 307;
        reply.headers.emplace_back("Location",
                                   "http://localhost:" + std::to_string(storage.port()) + "/x?X-Sig=canary-secret");
        return reply;
    };
    const Outcome refused = pull_from(registry);
    CHECK(refused.code() == "registry-error");
    CHECK(refused.exit() == Exit::unavailable);
    CHECK(refused.message() == "the server localhost that the registry redirects to answered 403");
    CHECK(refused.error->hint().find("clocks") != std::string::npos);
    status = 404;
    const Outcome absent = pull_from(registry);
    CHECK(absent.code() == "image-not-found");
    CHECK(absent.message().starts_with("the server localhost that the registry redirects to has no blobs/sha256:"));
}

TEST_CASE("other answers than 200: what a proxy passes on is taken, what is no blob is no short blob") {
    for (const int status : {200, 203}) {
        Scene scene([=](int, const FakeRequest&, FakeReply& reply) { reply.status = status; });
        CHECK(pull_from(scene.registry).code() == "ok");
        CHECK(scene.tries == 1);
    }
    Scene whole([](int, const FakeRequest&, FakeReply& reply) {  // without having been asked for a range
        reply.status = 206;
        const std::string size = std::to_string(reply.body.size());
        reply.headers = {{"Content-Range", "bytes 0-" + std::to_string(reply.body.size() - 1) + "/" + size}};
    });
    CHECK(pull_from(whole.registry).code() == "ok");
    CHECK(whole.tries == 1);
    for (const int status : {202, 204}) {
        Scene scene([=](int, const FakeRequest&, FakeReply& reply) { reply.status = status; });
        const Outcome outcome = pull_from(scene.registry);
        CHECK(outcome.code() == "registry-error");
        CHECK(outcome.exit() == Exit::unavailable);
        CHECK_MESSAGE(outcome.message().ends_with(" answered " + std::to_string(status)), outcome.message());
    }
}

TEST_CASE("M60 the registry asks for patience") {
    const auto patience = [](const char* header, int failures) {
        return [=](int tries, const FakeRequest&, FakeReply& reply) {
            if (tries <= failures) {
                reply = FakeReply{};
                reply.status = tries % 2 == 0 ? 503 : 429;
                reply.headers.emplace_back("Retry-After", header);
            }
        };
    };
    Scene seconds(patience("7", 1));
    std::vector<std::string> told;
    const Outcome waited = pull_from(seconds.registry, [&](auto& request) {
        request.waiting = [&](const std::string& why, std::chrono::milliseconds wait) {
            told.push_back(why + ", " + base::format_duration(wait));
        };
    });
    CHECK(told == std::vector<std::string>{"the registry " + seconds.registry.host() + " answered 429, 7.0s"});
    CHECK(waited.code() == "ok");
    CHECK(waited.sleeps == std::vector<std::chrono::milliseconds>{std::chrono::seconds(7)});
    Scene capped(patience("99999", 1));
    CHECK(pull_from(capped.registry).sleeps == std::vector<std::chrono::milliseconds>{std::chrono::seconds(60)});
    Scene dated(patience("Tue, 14 Nov 2023 22:13:51 GMT", 1));  // half a minute after the clock's time
    CHECK(pull_from(dated.registry).sleeps == std::vector<std::chrono::milliseconds>{std::chrono::seconds(30)});
    Scene late([&](int tries, const FakeRequest& request, FakeReply& reply) {
        patience("Tue, 14 Nov 2023 23:13:51 GMT", 1)(tries, request, reply);
        reply.headers.emplace_back("Date", "Tue, 14 Nov 2023 23:13:31 GMT");  // the node's clock is an hour behind
    });
    CHECK(pull_from(late.registry).sleeps == std::vector<std::chrono::milliseconds>{std::chrono::seconds(20)});
    for (const char* header : {"soon", "Mon, 01 Jan 2001 00:00:00 GMT"}) {
        Scene unhelpful(patience(header, 1));
        const Outcome own = pull_from(unhelpful.registry);
        REQUIRE(own.sleeps.size() == 1);
        CHECK(own.sleeps[0] < std::chrono::seconds(1));
    }
    // Many nodes that start at the same time do not come back at the same time: chance is not that of the clock.
    std::set<std::chrono::milliseconds> waits;
    for (int node = 0; node < 12; ++node) {
        Scene alike(patience("soon", 1));
        waits.insert(pull_from(alike.registry).sleeps.at(0));
    }
    CHECK(waits.size() > 3);
    Scene storm(patience("1", 99));
    const Outcome given_up = pull_from(storm.registry);
    CHECK(given_up.code() == "registry-error");
    CHECK(given_up.exit() == Exit::unavailable);
    CHECK(given_up.error->is_retryable());
    CHECK(storm.tries == 5);
    CHECK(given_up.detail("tries") == "5");
    CHECK(given_up.error->hint() == "run the same command again later");
    const Outcome deadline =
        pull_from(storm.registry, [](auto& request) { request.deadline = std::chrono::seconds(0); });
    CHECK(deadline.code() == "pull-timeout");
    CHECK(deadline.exit() == Exit::timeout);
}

TEST_CASE("M60 what a proxy may have said itself is not reported as the registry's word") {
    const auto told = [](int status, const std::string& words) {
        FakeRegistry registry;
        registry.add_image("v1", {plain_layer(big_tar())});
        registry.intercept = [=](const FakeRequest& request) -> std::optional<FakeReply> {
            if (request.target.find("/manifests/") == std::string::npos) {
                return std::nullopt;
            }
            FakeReply reply;
            reply.status = status;
            reply.body = words;
            return reply;
        };
        const std::string name = "127.0.0.1:" + std::to_string(registry.server().port());
        ::setenv("http_proxy", ("http://" + name).c_str(), 1);
        const Outcome outcome = pull_from(registry);
        ::unsetenv("http_proxy");
        std::string message = outcome.code() + ": " + outcome.message();
        for (std::size_t at = 0; (at = message.find(name)) != std::string::npos;) {
            message.replace(at, name.size(), "HOST");
        }
        return message;
    };
    const std::string words = R"({"errors":[{"code":"TOOMANYREQUESTS","message":"later"}]})";
    CHECK(told(502, "<html>").find("registry-error: ") == 0);
    CHECK(told(502, "<html>").find("the proxy HOST, or the registry HOST behind it, answered 502") !=
          std::string::npos);
    CHECK(told(403, "<html>").find("the proxy HOST, or the registry behind it, denies access") != std::string::npos);
    CHECK(told(407, "").find("network: ") == 0);
    CHECK(told(407, "").find("the proxy HOST answered 407 where an answer of the registry HOST was expected") !=
          std::string::npos);
    CHECK(told(503, words).find("the registry HOST answered 503") != std::string::npos);
    CHECK(told(503, words).find("proxy") == std::string::npos);
}

}
