// SPDX-License-Identifier: Apache-2.0
// What is kept of an extraction: no layer is read again, the same tree comes out, and nothing that was changed is believed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "registry/cache.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace fs = std::filesystem;

namespace {

using Tweak = std::function<void(registry::PullRequest&)>;

std::string bytes_of(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

void put_bytes(const fs::path& path, const std::string& bytes) {
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// An image with all that an extraction can hold, in two layers.
std::vector<TestLayer> rich_layers() {
    TarBuilder lower;
    lower.file(k_modules + "/a.ko", std::string(300'000, 'a')).file(k_modules + "/gone.ko", "gone").file("opt/lib/modules/other/x.ko", "x");
    lower.file(k_modules + "/modules.softdep", "install a /bin/sh\n").file("firmware/one.bin", "fw").dir("opt/lib/modules/empty/");
    TarBuilder upper;
    upper.file(k_modules + "/.wh.gone.ko", "").file(k_modules + "/sub/b.ko", "b", 0755).hardlink(k_modules + "/sub/c.ko", k_modules + "/sub/b.ko");
    upper.symlink(k_modules + "/link.ko", "sub/b.ko").symlink(k_modules + "/nowhere.ko", "absent.ko").symlink(k_modules + "/build", "/usr/src/x");
    upper.dir(k_modules + "/hollow/").file(k_modules + "/zero.ko", "").file("firmware/two.bin", "fw");
    return {gzip_layer(lower.finish()), plain_layer(upper.finish())};
}

struct ExtractionScene {
    sys::TempDir top{"kmm-test-"};
    FakeRegistry registry;
    std::string directory = top.path() + "/cache";
    std::vector<TestLayer> layers = rich_layers();

    ExtractionScene() { registry.add_image("v1", layers); }

    [[nodiscard]] Outcome pull(const Tweak& tweak = nullptr, bool cached = true) {
        const std::size_t before = registry.server().count("/v2/team/");
        Outcome outcome = pull_from(registry, [&](registry::PullRequest& request) {
            request.cache_dir = cached ? directory : "";
            request.firmware_path = "/firmware";
            if (tweak) {
                tweak(request);
            }
        });
        requests = registry.server().count("/v2/team/") - before;
        return outcome;
    }
    [[nodiscard]] fs::path blob(const std::string& bytes) const { return directory + "/blobs/sha256/" + sha256(bytes).substr(7); }
    /// Takes the layers out of the cache.
    void remove_layers() const {
        for (const TestLayer& layer : layers) {
            fs::remove(blob(layer.bytes));
        }
    }
    [[nodiscard]] std::vector<fs::path> lists() const {
        std::vector<fs::path> result;
        for (const auto& item : fs::directory_iterator(directory + "/extractions")) {
            result.push_back(item.path());
        }
        return result;
    }
    std::size_t requests = 0;
};

/// CHECKs that both pulls had the same result, byte for byte.
void check_same(const Outcome& found, const Outcome& expected) {
    REQUIRE_MESSAGE(!found.error, found.message());
    CHECK(found.files == expected.files);
    CHECK(found.modes == expected.modes);
    CHECK(found.result.digest == expected.result.digest);
    CHECK(found.result.kernels_found == expected.result.kernels_found);
    REQUIRE(found.listed.size() == expected.listed.size());
    for (std::size_t i = 0; i < found.listed.size(); ++i) {
        CHECK(found.listed[i].path == expected.listed[i].path);
        CHECK(found.listed[i].size == expected.listed[i].size);
        CHECK(found.listed[i].sha256 == expected.listed[i].sha256);
    }
}

/// The body of a list with its head, so that only the rules on what it says are left to refuse it.
std::string with_head(const std::string& body) { return "kmm-extraction 1 " + sha256(body) + "\n" + body; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

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
    for (const auto policy : {registry::PullPolicy::always, registry::PullPolicy::if_not_present, registry::PullPolicy::never}) {
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
    const Outcome pinned = scene.pull([&](auto& request) { request.reference = scene.registry.reference("@" + plain.result.digest); });
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
            put_bytes(file, kind == "flip" ? bytes : kind == "cut" ? content.substr(1) : kind == "longer" ? content + "a" : "");
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
    CHECK(scene.pull([](auto& request) { request.policy = registry::PullPolicy::never; }).code() == "image-not-cached");
    check_same(scene.pull(), plain);
    CHECK(scene.requests == 3);
}

TEST_CASE("a list with any byte changed, or cut anywhere, is never used and never an error") {
    ExtractionScene scene;
    const Outcome plain = scene.pull();
    REQUIRE(scene.lists().size() == 1);
    const fs::path list = scene.lists().front();
    const std::string text = bytes_of(list);
    REQUIRE(registry::parse_extraction(text).has_value());
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string other = text;
        other[at] = static_cast<char>(other[at] ^ 1);
        const bool accepted = registry::parse_extraction(other).has_value() || registry::parse_extraction(text.substr(0, at)).has_value();
        REQUIRE_MESSAGE(!accepted, "byte " << at);
    }
    CHECK_FALSE(registry::parse_extraction(text + " ").has_value());
    const std::size_t step = text.size() / 12;
    for (std::size_t at = 0; at < text.size(); at += step) {
        CAPTURE(at);
        std::string other = text;
        other[at] = static_cast<char>(other[at] ^ 1);
        put_bytes(list, at % 2 == 0 ? other : text.substr(0, at));
        CHECK(registry::Cache(scene.directory).verify().damaged_lists == std::vector<std::string>{list.filename()});
        const Outcome outcome = scene.pull();
        check_same(outcome, plain);
        CHECK(outcome.warned("cache-damaged: the list of files of " + plain.result.digest));
        CHECK(bytes_of(list) == text);
    }
}

TEST_CASE("a list that lies keeps to the rules of a layer") {
    ExtractionScene scene;
    const Outcome plain = scene.pull();
    const fs::path list = scene.lists().front();
    const std::string text = bytes_of(list);
    const std::string body = text.substr(text.find('\n') + 1);
    const std::string path = R"("path":")" + k_modules + R"(/a.ko")";
    const std::string link = R"("target":"sub/b.ko")";
    const std::string hard = R"("target":")" + k_modules + R"(/sub/b.ko")";
    const std::string digest = plain.result.digest;
    for (const std::string& other :
         {replaced(body, path, R"("path":"../../victim")"), replaced(body, path, R"("path":"/etc/victim")"), replaced(body, path, R"("path":"victim")"),
          replaced(body, path, R"("path":"")"), replaced(body, path, R"("path":")" + k_modules + R"(/../../../../x")"),
          replaced(body, path, R"("path":")" + k_modules + R"(/sub/b.ko")"), replaced(body, path, R"("path":")" + k_modules + R"(/.wh.a")"),
          replaced(body, link, R"("target":"/etc/passwd")"), replaced(body, link, R"("target":"../../../../../../../victim")"),
          replaced(body, link, R"("target":"link.ko")"), replaced(body, link, R"("target":"")"), replaced(body, hard, R"("target":"/etc/passwd")"),
          replaced(body, hard, R"("target":"etc/passwd")"), replaced(body, R"("kind":"symlink")", R"("kind":"special")"),
          replaced(body, R"("kind":"symlink")", R"("kind":"directory")"), replaced(body, R"("size":300000)", R"("size":299999)"),
          replaced(body, R"("size":300000)", R"("size":-1)"), replaced(body, R"("size":300000)", R"("size":99999999999999)"),
          replaced(body, R"("kernels":[)", R"("kernels":["../x",)"), replaced(body, R"("entries":[)", R"("entries":[7,)"),
          replaced(body, R"("manifest":"sha256:)", R"("manifest":"md5:)"), replaced(body, R"(\"manifest\":\"sha256:)", R"(\"manifest\":\"sha512:)"),
          std::string("{}\n"), std::string("[]\n"), std::string("\n")}) {
        CAPTURE(other);
        put_bytes(list, with_head(other));
        const Outcome outcome = scene.pull();
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        for (const auto& [name, content] : outcome.files) {
            CHECK_MESSAGE((name.starts_with(k_modules + "/") || name.starts_with("firmware/")), name);
        }
        // A link that could not be told from a directory is the one lie that breaks no rule.
        if (other.find(R"("kind":"directory","target")") == std::string::npos) {
            check_same(outcome, plain);
            CHECK(outcome.warned("cache-damaged"));
            CHECK(bytes_of(list) == text);
        }
    }
    // The list of something else under this name.
    static_cast<void>(scene.pull([](auto& request) { request.firmware_path = ""; }));
    for (const fs::path& other : scene.lists()) {
        if (other != list) {
            put_bytes(list, bytes_of(other));
        }
    }
    check_same(scene.pull(), plain);
    CHECK(bytes_of(list) == text);
}

TEST_CASE("names that a list cannot hold: the layers are read each time") {
    ExtractionScene scene;
    scene.registry.add_image("v1", {plain_layer(TarBuilder().file(k_modules + "/a.ko", "a").symlink(k_modules + "/l.ko", "\xff/../a.ko").dir(k_modules + "/\x7f").finish())});
    const Outcome bad = scene.pull();
    CHECK(bad.code() == "image-unsafe");
    scene.registry.add_image("v1", {plain_layer(TarBuilder().file(k_modules + "/a.ko", "a").file("opt/lib/modules/\xff/x.ko", "x").finish())});
    for (int round = 0; round < 2; ++round) {
        const Outcome outcome = scene.pull();
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.result.kernels_found == std::vector<std::string>{k_kernel, "\xff"});
        CHECK(scene.lists().empty());
    }
}

TEST_CASE("prune takes what was extracted with its image, and before any image") {
    ExtractionScene scene;
    const auto layer = [](char letter) { return plain_layer(TarBuilder().file(k_modules + "/a.ko", std::string(20'000, letter)).finish()); };
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

TEST_CASE("prune takes lists of other versions, and the files that they alone need") {
    ExtractionScene scene;
    REQUIRE(scene.pull().code() == "ok");
    REQUIRE(scene.lists().size() == 1);
    const fs::path ours = scene.lists().front();
    auto record = registry::parse_extraction(bytes_of(ours));
    REQUIRE(record.has_value());
    CHECK(record->key.is_ours());
    record->key.text = replaced(record->key.text, KMM_VERSION, "0.0.1");
    CHECK_FALSE(record->key.is_ours());
    const std::string own_file = "of the other version";
    std::ofstream(scene.blob(own_file)) << own_file;
    record->entries.push_back({.path = k_modules + "/zz.ko", .digest = {image::DigestAlgorithm::sha256, sha256(own_file).substr(7)}, .size = own_file.size()});
    const fs::path other = ours.parent_path() / record->key.name();
    std::ofstream(other) << registry::extraction_text(*record);
    registry::Cache cache(scene.directory);
    CHECK(cache.extractions().size() == 2);
    CHECK(cache.verify().damaged_lists.empty());
    REQUIRE(cache.prune(1U << 30U).has_value());
    CHECK(scene.lists() == std::vector<fs::path>{ours});
    CHECK_FALSE(fs::exists(scene.blob(own_file)));
    CHECK(cache.verify().damaged.empty());
    CHECK(cache.images().size() == 1);
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
