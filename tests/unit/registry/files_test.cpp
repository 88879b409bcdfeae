// SPDX-License-Identifier: Apache-2.0
// What a pull says of the files it extracted: digests where they are needed; and what it keeps of each.
#include <doctest/doctest.h>

#include <malloc.h>

#include <filesystem>
#include <fstream>

#include "registry/client/request.hpp"
#include "registry/unpack/staging.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

void no_digests(registry::PullRequest& request) { request.file_digests = false; }

constexpr std::size_t k_many = 20'000;

std::string many_path(std::size_t number) {
    return k_modules + "/kernel/drivers/net/ethernet/vendor/driver_" + std::to_string(100'000 + number) + ".ko";
}

/// A view of k_many files, all in one layer.
registry::LayerView view_of_many(const registry::Limits& limits) {
    registry::LayerView view({"opt/lib/modules", {}, ""}, limits);
    view.begin_layer();
    for (std::size_t i = 0; i < k_many; ++i) {
        CHECK(view.add({many_path(i), registry::EntryKind::file, {}, 100, false, false}) == i);
    }
    return view;
}

/// Bytes that are allocated at this moment; 0 if a sanitizer has a memory of its own.
std::size_t allocated() {
    const struct mallinfo2 facts = ::mallinfo2();
    return facts.uordblks + facts.hblkhd;
}

std::string module_pair() {
    return TarBuilder().file(k_modules + "/a.ko", "module a").file(k_modules + "/b.ko", "").finish();
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("files whose digest nobody asks for are not hashed, and are never taken for hashed ones") {
    const Outcome outcome = pull_tar(module_pair(), no_digests);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files ==
          std::map<std::string, std::string>{{k_modules + "/a.ko", "module a"}, {k_modules + "/b.ko", ""}});
    REQUIRE(outcome.listed.size() == 2);
    for (const registry::ExtractedFile& file : outcome.listed) {
        CHECK(file.sha256.empty());
        CHECK_THROWS_AS(static_cast<void>(file.digest()), Error);
    }
    const Outcome hashed = pull_tar(module_pair());
    CHECK(hashed.result.digest == outcome.result.digest);
    for (const registry::ExtractedFile& file : hashed.listed) {
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
        CHECK("sha256:" + cached.listed[0].digest() == sha256("module a"));
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

TEST_CASE("files are given in the order of their paths, as many as are asked for") {
    registry::Limits limits;
    registry::LayerView view({"opt/lib/modules", {}, ""}, limits);
    view.begin_layer();
    registry::ExtractedTree tree;
    for (const char* name : {"c.ko", "a.ko", "sub/b.ko"}) {
        CHECK(view.add({k_modules + "/" + name, registry::EntryKind::file, {}, 1, false, false}) ==
              tree.contents.size());
        tree.contents.push_back({tree.contents.size(), registry::FileSum(registry::digest_of(name))});
    }
    CHECK_FALSE(view.add({k_modules + "/d.ko", registry::EntryKind::hardlink, k_modules + "/a.ko", 0, false, false}));
    CHECK_FALSE(view.add({k_modules + "/e.ko", registry::EntryKind::symlink, "a.ko", 0, false, false}));
    tree.nodes = view.take_nodes();
    const registry::ExtractedFiles files(std::make_shared<const registry::ExtractedTree>(tree));
    CHECK(files.size() == 4);
    std::string listed;
    files.each([&](const registry::ExtractedFile& file) {
        listed += file.path.substr(k_modules.size() + 2) + std::to_string(file.size) + file.digest().substr(0, 4) + " ";
    });
    const auto head = [](const char* name) { return registry::digest_of(name).hex.substr(0, 4); };
    CHECK(listed == "a.ko1" + head("a.ko") + " c.ko0" + head("c.ko") + " d.ko1" + head("a.ko") + " sub/b.ko2" +
                        head("sub/b.ko") + " ");
    std::size_t count = 0;
    files.each([&](const auto&) { ++count; }, 2);
    CHECK(count == 2);
    registry::ExtractedFiles().each([&](const auto&) { ++count; });
    CHECK(count == 2);
    CHECK(registry::FileSum().hex().empty());
    CHECK_THROWS_AS(registry::FileSum(registry::digest_of("x", image::DigestAlgorithm::sha512)), Error);
}

TEST_CASE("an image of many files takes little memory for each") {
    const registry::Limits limits;
    const std::size_t before = allocated();
    registry::LayerView view = view_of_many(limits);
    std::vector<registry::StoredFile> stored(k_many,
                                             registry::StoredFile{1, registry::FileSum(registry::digest_of("x"))});
    // The path, which has 75 bytes; the node it is the key of; a size and a digest.
    CHECK((allocated() - before) / k_many <= 240);
    const std::size_t whole = allocated();
    const registry::ExtractedFiles files(
        std::make_shared<const registry::ExtractedTree>(registry::ExtractedTree{view.take_nodes(), std::move(stored)}));
    CHECK((allocated() - whole) / k_many <= 1);
    CHECK(files.size() == k_many);
}

TEST_CASE("what a view was before a layer costs nothing until the layer changes it") {
    const registry::Limits limits;
    registry::LayerView view = view_of_many(limits);
    const std::size_t before = allocated();
    {
        const registry::LayerView mark = view;
        view.begin_layer();
        CHECK_FALSE(view.add({"usr/bin/tool", registry::EntryKind::file, {}, 1, true, false}));
        CHECK_FALSE(view.add({"usr/.wh.lib", registry::EntryKind::file, {}, 0, false, false}));
        CHECK((allocated() - before) / k_many <= 1);
        CHECK(view.add({many_path(0), registry::EntryKind::file, {}, 7, false, false}) == k_many);
        CHECK((before == 0 || (allocated() - before) / k_many >= 100));
        CHECK(mark.nodes().at(many_path(0)).number == 0);
        CHECK(view.nodes().at(many_path(0)).number == k_many);
        view = mark;  // as after bytes that were withdrawn
        CHECK(view.nodes().at(many_path(0)).number == 0);
    }
    CHECK(view.nodes().size() == view_of_many(limits).nodes().size());
}

}
