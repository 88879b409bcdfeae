// SPDX-License-Identifier: Apache-2.0
// What is kept of an extraction: no layer is read again, the same tree comes out, and nothing that was changed is
// believed.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "registry/pull/cache.hpp"
#include "registry/pull/puller.hpp"
#include "unit/registry/extraction_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace fs = std::filesystem;

TEST_SUITE("registry::unit") {

TEST_CASE("a pull of a cached image reads no byte of a layer, and makes the same tree") {
    ExtractionScene scene;
    const Outcome plain = scene.pull(nullptr, false);
    REQUIRE(plain.warned("dangling-link"));
    REQUIRE(plain.warned("image-command-ignored"));
    REQUIRE(plain.result.kernels_found == std::vector<std::string>{k_kernel, "empty", "other"});
    check_same(scene.pull(), plain);
    REQUIRE(scene.lists().size() == 1);
    // Layers that are not there cannot be read, and nobody is asked for them.
    scene.remove_layers();
    for (const auto policy :
         {registry::PullPolicy::always, registry::PullPolicy::if_not_present, registry::PullPolicy::never}) {
        CAPTURE(static_cast<int>(policy));
        const Outcome again = scene.pull([&](auto& request) { request.policy = policy; });
        check_same(again, plain);
        CHECK(again.result.warnings == plain.result.warnings);
        CHECK(again.result.bytes_downloaded == 0);
        CHECK(scene.requests == (policy == registry::PullPolicy::always ? 1 : 0));
    }
    for (const TestLayer& layer : scene.layers) {
        CHECK_FALSE(fs::exists(scene.blob(layer.bytes)));
    }
    const Outcome pinned =
        scene.pull([&](auto& request) { request.reference = scene.registry.reference("@" + plain.result.digest); });
    check_same(pinned, plain);
    CHECK(scene.requests == 0);
}

TEST_CASE("an extracted file that is changed does not change the cache") {
    ExtractionScene scene;
    const std::string out = scene.top.path() + "/out";
    registry::PullRequest request;
    request.reference = scene.registry.reference();
    request.kernels = {k_kernel};
    request.tls.insecure = true;
    request.cache_dir = scene.directory;
    net::CurlHttpClient http;
    TestClock clock;
    for (int round = 0; round < 2; ++round) {
        fs::create_directory(out);
        static_cast<void>(registry::pull(request, out, http, clock));
        put_bytes(out + "/" + k_modules + "/a.ko", "mine");
        fs::remove_all(out);
        CHECK(bytes_of(scene.blob(std::string(300'000, 'a'))) == std::string(300'000, 'a'));
        CHECK(registry::Cache(scene.directory).verify().damaged.empty());
    }
}

TEST_CASE("another question has another list") {
    ExtractionScene scene;
    static_cast<void>(scene.pull());
    const std::vector<std::pair<const char*, Tweak>> others = {
        {"no firmware", [](auto& request) { request.firmware_path = ""; }},
        {"modprobe.d", [](auto& request) { request.modprobed_dir = "/etc/modprobe.d"; }},
        {"all kernels", [](auto& request) { request.all_kernels = true; }},
        {"two kernels", [](auto& request) { request.kernels.push_back("other"); }},
        {"variant", [](auto& request) { request.variant = "v2"; }},
        {"laxer", [](auto& request) { request.limits.ratio = 1000; }},
    };
    std::size_t lists = 1;
    for (const auto& [what, tweak] : others) {
        CAPTURE(what);
        const Outcome plain = scene.pull(tweak, false);
        const Outcome first = scene.pull(tweak);
        check_same(first, plain);
        CHECK(scene.lists().size() == ++lists);
        check_same(scene.pull(tweak), plain);
        CHECK(scene.lists().size() == lists);
    }
    // What laxer limits let through is refused under stricter ones.
    for (const auto& strict : std::vector<Tweak>{[](auto& request) { request.limits.inflated_layer_bytes = 1000; },
                                                 [](auto& request) { request.limits.entries = 3; },
                                                 [](auto& request) { request.limits.file_bytes = 1000; }}) {
        CHECK(scene.pull(strict).code() == "image-limit");
    }
    CHECK(scene.pull([](auto& request) { request.kernels = {"6.6.6"}; }).code() == "kernel-not-in-image");
    CHECK(scene.pull([](auto& request) { request.dir_name = "/"; }).code() == "kernel-not-in-image");
    CHECK(scene.lists().size() == lists);
}

TEST_CASE("files of an extraction that are damaged or gone: the layers are read") {
    ExtractionScene scene;
    const Outcome plain = scene.pull();
    const std::string content(300'000, 'a');
    for (const std::string kind : {"flip", "cut", "longer", "empty", "gone", "directory"}) {
        CAPTURE(kind);
        const fs::path file = scene.blob(content);
        if (kind == "gone" || kind == "directory") {
            fs::remove(file);
            if (kind == "directory") {
                fs::create_symlink("/etc/passwd", file);
            }
        } else {
            std::string bytes = content;
            bytes[150'000] = 'x';
            put_bytes(file, kind == "flip"     ? bytes
                            : kind == "cut"    ? content.substr(1)
                            : kind == "longer" ? content + "a"
                                               : "");
        }
        const Outcome outcome = scene.pull();
        check_same(outcome, plain);
        CHECK(scene.requests == 1);
        CHECK(outcome.warned("cache-damaged: " + sha256(content)) == (kind != "gone" && kind != "directory"));
        CHECK(bytes_of(file) == content);  // mended
        CHECK_FALSE(fs::is_symlink(file));
        CHECK(registry::Cache(scene.directory).verify().damaged.empty());
    }
    scene.remove_layers();
    const Outcome mended = scene.pull();
    check_same(mended, plain);
    CHECK(mended.result.bytes_downloaded == 0);
    // Without layers and without the file, the registry has to give them, or there is no image.
    fs::remove(scene.blob(content));
    const Outcome never = scene.pull([](auto& request) { request.policy = registry::PullPolicy::never; });
    CHECK(never.code() == "image-not-cached");
    CHECK(never.message().find("no sound copy of sha256:") != std::string::npos);
    check_same(scene.pull(), plain);
    CHECK(scene.requests == 3);
}

TEST_CASE("links to links, to directories and between names of one file are kept") {
    ExtractionScene scene;
    TarBuilder layer;
    layer.file(k_modules + "/dir/sub/a.ko", "a")
        .hardlink(k_modules + "/0.ko", k_modules + "/dir/sub/a.ko")
        .file(k_modules + "/z.ko", "z", 0755);
    layer.symlink(k_modules + "/1.ko", "2.ko")
        .symlink(k_modules + "/2.ko", "dirlink/sub/b.ko")
        .symlink(k_modules + "/dirlink", "dir")
        .file(k_modules + "/dir/sub/b.ko", "b");
    layer.hardlink(k_modules + "/y.ko", k_modules + "/z.ko")
        .symlink(k_modules + "/up", "../" + k_kernel + "/dir")
        .file("firmware/z/fw.bin", "fw")
        .symlink("firmware/fw", "z/fw.bin");
    layer.file(k_modules + "/.wh.dir/c.ko", "c");  // a directory whose own entry would be a whiteout
    scene.layers = {plain_layer(layer.finish())};
    scene.registry.add_image("v1", scene.layers);
    const Outcome plain = scene.pull(nullptr, false);
    check_same(scene.pull(), plain);
    REQUIRE(scene.lists().size() == 1);
    scene.remove_layers();
    const Outcome again = scene.pull();
    check_same(again, plain);
    CHECK(again.result.bytes_downloaded == 0);
}

TEST_CASE("prune takes what was extracted with its image, and before any image") {
    ExtractionScene scene;
    const auto layer = [](char letter) {
        return plain_layer(TarBuilder().file(k_modules + "/a.ko", std::string(20'000, letter)).finish());
    };
    for (const char tag : {'a', 'b'}) {
        scene.registry.add_image(std::string(1, tag), {layer(tag)});
    }
    const auto pull_tag = [&](char tag, std::uint64_t limit) {
        return scene.pull([&](auto& request) {
            request.reference = scene.registry.reference(std::string(":") + tag);
            request.cache_bytes = limit;
        });
    };
    const fs::path file_a = scene.blob(std::string(20'000, 'a'));
    const fs::path file_b = scene.blob(std::string(20'000, 'b'));
    CHECK(pull_tag('a', 1U << 20U).code() == "ok");
    CHECK(pull_tag('b', 1U << 20U).code() == "ok");
    {
        const auto images = registry::Cache(scene.directory).images();
        REQUIRE(images.size() == 2);
        CHECK(images[0].extracted > 20'000);
        CHECK(images[0].size() > 40'000);
        const auto report = registry::Cache(scene.directory).verify();
        CHECK(report.blobs == 10);  // manifest, configuration, layer, file and list of two images
        CHECK(report.bytes == images[0].size() + images[1].size());
    }
    // 50 kB hold both images but one of the extractions: that of what is pulled stays, and no image goes.
    CHECK(pull_tag('b', 70'000).code() == "ok");
    CHECK(scene.lists().size() == 1);
    CHECK_FALSE(fs::exists(file_a));
    CHECK(fs::exists(file_b));
    CHECK(registry::Cache(scene.directory).images().size() == 2);
    CHECK(pull_tag('a', 50'000).code() == "ok");
    CHECK(scene.lists().empty());
    CHECK_FALSE(fs::exists(file_a));
    CHECK_FALSE(fs::exists(file_b));
    CHECK(registry::Cache(scene.directory).images().size() == 2);
    // With its image.
    CHECK(pull_tag('a', 1U << 20U).code() == "ok");
    CHECK(fs::exists(file_a));
    scene.registry.add_image("a", {layer('c')});
    CHECK(pull_tag('a', 1U << 20U).code() == "ok");
    CHECK_FALSE(fs::exists(file_a));
    CHECK(scene.lists().size() == 1);
    registry::Cache cache(scene.directory);
    const auto report = cache.prune(0);
    REQUIRE(report.has_value());
    CHECK(cache.verify().blobs == 0);
    CHECK(cache.verify().bytes == 0);
    CHECK(scene.lists().empty());
}

TEST_CASE("two at once, and one beside a damaged list") {
    ExtractionScene scene;
    const Outcome plain = scene.pull();
    for (int round = 0; round < 4; ++round) {
        std::vector<pid_t> children;
        for (int number = 0; number < 3; ++number) {
            const pid_t child = ::fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                const Outcome outcome = scene.pull();
                ::_exit(!outcome.error && outcome.files == plain.files ? 0 : 1);
            }
            children.push_back(child);
        }
        for (const fs::path& list : scene.lists()) {
            put_bytes(list, "kmm-extraction");
        }
        for (const pid_t child : children) {
            int status = 0;
            REQUIRE(::waitpid(child, &status, 0) == child);
            CHECK(status == 0);
        }
        CHECK(registry::Cache(scene.directory).verify().damaged.empty());
        check_same(scene.pull(), plain);
    }
}

}
