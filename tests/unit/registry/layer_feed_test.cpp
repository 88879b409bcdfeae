// SPDX-License-Identifier: Apache-2.0
// Layers that are read while they arrive: the feed itself, and pulls whose bytes turn out to be others.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "registry/client/request.hpp"
#include "registry/pull/layer_feed.hpp"
#include "registry/pull/puller.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace fs = std::filesystem;

namespace {

using registry::BlobTarget;
using registry::LayerFeed;

constexpr std::size_t k_mebibyte = 1U << 20U;

std::string rest_of_layer(LayerFeed& feed) {
    std::string text;
    for (std::string_view piece = feed.next(); !piece.empty(); piece = feed.next()) {
        text += piece;
    }
    return text;
}

/// A tar of one module of 600,000 bytes called `name`, and of `more` behind it. No two names give the same bytes.
std::string tar_of(const std::string& name, const std::function<void(TarBuilder&)>& more) {
    std::string bytes(600'000, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = name[i % name.size()];
    }
    TarBuilder tar;
    tar.file(k_modules + "/" + name, bytes);
    more(tar);
    return tar.finish();
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("layers come out of the feed in order, each with its end") {
    LayerFeed feed(3, [](std::size_t index, BlobTarget& target) {
        for (std::size_t i = 0; i < index * 7; ++i) {
            target.put(std::string(100'000, static_cast<char>('a' + index)));
        }
    }, nullptr);
    CHECK(rest_of_layer(feed).empty());
    CHECK(feed.next().empty());  // for ever after
    CHECK(feed.settle());
    CHECK(rest_of_layer(feed) == std::string(700'000, 'b'));
    CHECK(feed.settle());
    CHECK(feed.next().front() == 'c');
    CHECK(feed.settle());  // passes over the rest
}

TEST_CASE("what was read of a blob that starts over is withdrawn, what was not is forgotten") {
    std::promise<void> was_read;
    std::promise<void> started_over;
    LayerFeed feed(2, [&](std::size_t index, BlobTarget& target) {
        target.put(std::string(k_mebibyte, 'x'));
        if (index == 0) {
            was_read.get_future().wait();
        }
        target.restart();
        target.restart();
        target.put("right");
        if (index == 1) {
            started_over.set_value();
        }
    }, nullptr);
    CHECK(feed.next().front() == 'x');
    was_read.set_value();
    CHECK_FALSE(feed.settle());
    CHECK(rest_of_layer(feed) == "right");
    CHECK(feed.settle());
    started_over.get_future().wait();
    CHECK(rest_of_layer(feed) == "right");
    CHECK(feed.settle());
}

TEST_CASE("a reader in the middle of a blob that starts over is told so") {
    std::promise<void> was_read;
    LayerFeed feed(1, [&](std::size_t, BlobTarget& target) {
        target.put(std::string(k_mebibyte, 'x'));
        was_read.get_future().wait();
        target.restart();
        target.put("right");
    }, nullptr);
    CHECK(feed.next().front() == 'x');
    was_read.set_value();
    CHECK_THROWS_AS(for (int i = 0; i < 100; ++i) static_cast<void>(feed.next()), registry::Withdrawn);
    CHECK_FALSE(feed.settle());
    CHECK(rest_of_layer(feed) == "right");
    CHECK(feed.settle());
}

TEST_CASE("a download that fails does so at its own layer, and again when that is settled") {
    LayerFeed feed(2, [](std::size_t index, BlobTarget& target) {
        target.put("some");
        if (index == 1) {
            throw Error(Exit::unavailable, "network", "gone");
        }
    }, nullptr);
    CHECK(rest_of_layer(feed) == "some");
    CHECK(feed.settle());
    CHECK_THROWS_AS(rest_of_layer(feed), Error);
    CHECK_THROWS_AS(static_cast<void>(feed.settle()), Error);
}

TEST_CASE("a download waits for a slow reader, and ends when nobody reads any more") {
    std::atomic<std::size_t> put{0};
    std::atomic<bool> given_up{false};
    std::atomic<bool> told{false};
    {
        LayerFeed feed(1, [&](std::size_t, BlobTarget& target) {
            try {
                for (; put < 1000; ++put) {
                    target.put(std::string(k_mebibyte, 'x'));
                }
            } catch (const Error& error) {
                given_up = error.code() == "interrupted";
                throw;
            }
        }, [&] { told = true; });
        CHECK(feed.next().front() == 'x');
    }
    CHECK(given_up);
    CHECK(told);
    CHECK(put < 20);
}

TEST_CASE("a layer is extracted while it arrives") {
    const sys::TempDir top("kmm-test-");
    const std::string out = top.path() + "/out";
    fs::create_directory(out);
    const TestLayer layer =
        plain_layer(TarBuilder().file(k_modules + "/a.ko", std::string(4 * k_mebibyte, 'm')).finish());
    const std::string config =
        R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[")" + layer.diff_id + R"("]}})";
    std::ofstream(top.path() + "/image.tar", std::ios::binary)
        << TarBuilder()
               .file("l.tar", layer.bytes)
               .file("c.json", config)
               .file("manifest.json", R"([{"Config":"c.json","Layers":["l.tar"]}])")
               .finish();
    bool seen = false;
    registry::PullRequest request;
    request.reference = "docker-archive:" + top.path() + "/image.tar";
    request.kernels = {k_kernel};
    request.progress = [&](std::uint64_t have, std::uint64_t total) {
        if (have < 2 * k_mebibyte || have == total) {
            return;
        }
        // The rest does not come before a part of this has been written.
        for (int tries = 0; tries < 1000 && !seen; ++tries) {
            std::error_code ignored;
            const auto size = fs::file_size(out + "/.kmm-pull/0", ignored);
            seen = !ignored && size > 0;
            if (!seen) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    };
    net::CurlHttpClient http;
    TestClock clock;
    static_cast<void>(registry::pull(request, out, http, clock));
    CHECK(seen);
    CHECK(fs::file_size(out + "/" + k_modules + "/a.ko") == 4 * k_mebibyte);
}

TEST_CASE("M02 what other bytes of the right size made in the first try leaves no trace") {
    const TestLayer right = plain_layer(tar_of("good.ko", [](TarBuilder& tar) { tar.dir(k_modules + "/x"); }));
    const std::pair<const char*, std::string> others[] = {
        {"another module", tar_of("evil.ko", [](TarBuilder& tar) { tar.dir(k_modules + "/y"); })},
        {"the same module with other bytes", tar_of("good.kO", [](TarBuilder& tar) { tar.dir(k_modules + "/y"); })},
        {"a path that leaves the image",
         tar_of("evil.ko", [](TarBuilder& tar) { tar.dir(k_modules + "/../../../../../x"); })},
        {"a warning", tar_of("evil.ko", [](TarBuilder& tar) { tar.symlink(k_modules + "/y", "nowhere"); })},
        {"no tar", std::string(right.bytes.size(), 'x')},
    };
    for (const auto& [what, bytes] : others) {
        CAPTURE(what);
        REQUIRE(bytes.size() == right.bytes.size());
        for (const bool always : {false, true}) {
            FakeRegistry registry;
            registry.add_image("v1", {plain_layer(tar_of("base.ko", [](TarBuilder&) {})), right});
            int tries = 0;
            registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
                if (request.target.find(sha256(right.bytes)) == std::string::npos) {
                    return std::nullopt;
                }
                FakeReply reply = registry.usual(request);
                if (always || ++tries == 1) {
                    reply.body = bytes;
                }
                return reply;
            };
            const Outcome outcome = pull_from(registry);
            if (always) {
                CHECK(outcome.code() == "digest-mismatch");
                continue;
            }
            REQUIRE_MESSAGE(!outcome.error, outcome.message());
            CHECK(outcome.files.size() == 2);
            CHECK(outcome.files.contains(k_modules + "/base.ko"));
            CHECK(outcome.files.contains(k_modules + "/good.ko"));
            CHECK(outcome.files.at(k_modules + "/good.ko").substr(0, 14) == "good.kogood.ko");
            CHECK(outcome.result.warnings.empty());
            CHECK(outcome.listed.size() == 2);
        }
    }
}

}
