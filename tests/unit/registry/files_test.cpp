// SPDX-License-Identifier: Apache-2.0
// What a pull says of the files it extracted: digests where they are needed.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

void no_digests(registry::PullRequest& request) { request.file_digests = false; }

std::string module_pair() { return TarBuilder().file(k_modules + "/a.ko", "module a").file(k_modules + "/b.ko", "").finish(); }

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("files whose digest nobody asks for are not hashed, and are never taken for hashed ones") {
    const Outcome outcome = pull_tar(module_pair(), no_digests);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == std::map<std::string, std::string>{{k_modules + "/a.ko", "module a"}, {k_modules + "/b.ko", ""}});
    REQUIRE(outcome.result.files.size() == 2);
    for (const registry::ExtractedFile& file : outcome.result.files) {
        CHECK(file.sha256.empty());
        CHECK_THROWS_AS(static_cast<void>(file.digest()), Error);
    }
    const Outcome hashed = pull_tar(module_pair());
    CHECK(hashed.result.digest == outcome.result.digest);
    for (const registry::ExtractedFile& file : hashed.result.files) {
        CHECK("sha256:" + file.digest() == sha256(file.size == 0 ? "" : "module a"));
    }
}

TEST_CASE("blobs and layers are verified whether or not files are hashed") {
    TestLayer layer = gzip_layer(module_pair());
    layer.diff_id = sha256("something else");
    const Outcome inside = pull_layers({layer}, no_digests);
    CHECK(inside.code() == "digest-mismatch");
    CHECK(inside.detail("found") == sha256(module_pair()));
    FakeRegistry registry;
    const TestLayer sound = gzip_layer(module_pair());
    registry.add_image("v1", {sound});
    std::string other = sound.bytes;
    other.at(4) = static_cast<char>(other.at(4) + 1);  // the time in gzip's header: inflates to the same
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply;
        reply.body = other;
        return request.target.ends_with(sha256(sound.bytes)) ? std::optional(reply) : std::nullopt;
    };
    CHECK(pull_from(registry, no_digests).code() == "digest-mismatch");
}

TEST_CASE("a cache and an image without a manifest need the files' digests themselves") {
    const sys::TempDir top("kmm-test-");
    FakeRegistry registry;
    registry.add_image("v1", {gzip_layer(module_pair())});
    for (int turn = 0; turn < 2; ++turn) {
        CAPTURE(turn);
        const Outcome cached = pull_from(registry, [&](auto& request) {
            no_digests(request);
            request.cache_dir = top.path() + "/cache";
        });
        REQUIRE_MESSAGE(!cached.error, cached.message());
        CHECK("sha256:" + cached.result.files[0].digest() == sha256("module a"));
    }
    std::filesystem::create_directory(top.path() + "/flat");
    std::ofstream(top.path() + "/flat/a.ko") << "module a";
    std::string digests[2];
    for (const bool wanted : {false, true}) {
        const Outcome flat = pull_from(registry, [&](auto& request) {
            request.reference = "dir:" + top.path() + "/flat";
            request.file_digests = wanted;
        });
        REQUIRE_MESSAGE(!flat.error, flat.message());
        digests[wanted ? 1 : 0] = flat.result.digest;
    }
    CHECK(digests[0] == digests[1]);
}

}
