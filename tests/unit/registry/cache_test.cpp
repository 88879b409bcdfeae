// SPDX-License-Identifier: Apache-2.0
// The cache by digest: what it spares, and that nothing in it is believed.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "image/mirrors.hpp"
#include "image/reference.hpp"
#include "registry/client/learnt.hpp"
#include "registry/pull/cache.hpp"
#include "registry/pull/puller.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::test;

namespace fs = std::filesystem;

namespace {

TestLayer cached_layer(const std::string& text) {
    return plain_layer(TarBuilder().file(k_modules + "/a.ko", text).finish());
}

struct CacheScene {
    sys::TempDir top{"kmm-test-"};
    FakeRegistry registry;
    std::string directory = top.path() + "/cache";

    CacheScene() { registry.add_image("v1", {cached_layer("one"), cached_layer("two")}); }

    [[nodiscard]] Outcome pull(registry::PullPolicy policy = registry::PullPolicy::always,
                               const std::function<void(registry::PullRequest&)>& tweak = nullptr) {
        before = asked();
        return pull_from(registry, [&](registry::PullRequest& request) {
            request.cache_dir = directory;
            request.policy = policy;
            if (tweak) {
                tweak(request);
            }
        });
    }
    [[nodiscard]] std::size_t asked() { return registry.server().count("/v2/team/"); }
    /// Requests since the last pull began.
    [[nodiscard]] std::size_t requests() { return asked() - before; }
    [[nodiscard]] std::string blob(const TestLayer& layer) const {
        return directory + "/blobs/sha256/" + sha256(layer.bytes).substr(7);
    }
    std::size_t before = 0;
};

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("what a tag means is repeated only to those who would have believed the same answer") {
    const image::Reference reference = image::parse_reference("reg.example/a/b:t");
    const auto by = [&](const std::function<void(registry::PullRequest&)>& tweak) {
        registry::PullRequest request;
        tweak(request);
        return registry::learnt_by(reference, request);
    };
    const auto login_of = [](const std::string& user) {
        return registry::Credential{"reg.example", user, "secret", ""};
    };
    const auto verified = by([](auto&) {});
    const auto insecure = by([](auto& request) { request.tls.insecure = true; });
    const auto pinned = by([](auto& request) { request.tls.pinned_key = "sha256//a"; });
    const auto pinned_only = by([](auto& request) {
        request.tls.pinned_key = "sha256//a";
        request.tls.insecure = true;
    });
    const auto other_pin = by([](auto& request) { request.tls.pinned_key = "sha256//b"; });
    const auto mirrored = by([](auto& request) {
        request.mirrors =
            image::read_mirrors("[[registry]]\nprefix='reg.example'\n[[registry.mirror]]\nlocation='m.example'\n", "f");
    });
    const auto bad_mirror = by([](auto& request) {
        request.mirrors = image::read_mirrors(
            "[[registry]]\nprefix='reg.example'\n[[registry.mirror]]\nlocation='m.example'\ninsecure=true\n", "f");
    });
    const auto alice = by([&](auto& request) { request.credentials = {login_of("alice")}; });
    const auto bob = by([&](auto& request) { request.credentials = {login_of("bob")}; });
    CHECK(insecure.is_hearsay());
    CHECK(bad_mirror.is_hearsay());
    CHECK_FALSE(verified.is_hearsay());
    CHECK_FALSE(pinned_only.is_hearsay());
    for (const auto* better : {&verified, &pinned}) {
        CHECK(better->serves(verified));
        CHECK(better->serves(insecure));
        CHECK_FALSE(insecure.serves(*better));
    }
    CHECK(insecure.serves(insecure));
    CHECK(pinned.serves(pinned_only));
    CHECK_FALSE(pinned_only.serves(pinned));
    CHECK_FALSE(pinned_only.serves(verified));
    CHECK_FALSE(verified.serves(pinned));
    CHECK_FALSE(other_pin.serves(pinned));
    CHECK(verified.serves(mirrored));
    CHECK_FALSE(mirrored.serves(verified));
    CHECK_FALSE(bad_mirror.serves(mirrored));
    CHECK(verified.serves(alice));
    CHECK_FALSE(alice.serves(verified));
    CHECK_FALSE(alice.serves(bob));
    CHECK(value::to_json(registry::to_node(alice)).find("secret") == std::string::npos);
    for (const auto* each : {&verified, &insecure, &pinned, &mirrored, &alice}) {
        const value::Node node = registry::to_node(*each);
        const auto back = registry::learnt_of(&node);
        REQUIRE(back);
        CHECK(back->serves(*each));
        CHECK(each->serves(*back));
    }
    CHECK_FALSE(registry::learnt_of(nullptr));
}

TEST_CASE("a cached image costs one request, or none") {
    CacheScene scene;
    const Outcome first = scene.pull();
    REQUIRE_MESSAGE(!first.error, first.message());
    CHECK(scene.requests() == 4);
    CHECK(first.result.bytes_downloaded > 0);
    const Outcome again = scene.pull();
    CHECK(scene.requests() == 1);  // what the tag means now
    CHECK(again.files == first.files);
    CHECK(again.result.digest == first.result.digest);
    CHECK(again.result.bytes_downloaded == 0);
    for (const auto policy : {registry::PullPolicy::if_not_present, registry::PullPolicy::never}) {
        const Outcome silent = scene.pull(policy);
        CHECK(silent.files == first.files);
        CHECK(scene.requests() == 0);
    }
    const std::string pinned = scene.registry.reference("@" + first.result.digest);
    CHECK(scene.pull(registry::PullPolicy::always, [&](auto& request) { request.reference = pinned; }).code() == "ok");
    CHECK(scene.requests() == 0);
}

TEST_CASE("manifests that do not say what they are, as OCI allows, are known again in the cache") {
    const auto bare = [](std::string text) {
        const std::size_t at = text.find("\"mediaType\"");
        REQUIRE(at < text.find("\"config\""));  // its own, not that of a part
        return text.erase(at, text.find(',', at) + 1 - at);
    };
    for (const bool index : {false, true}) {
        CacheScene scene;
        const std::string manifest = bare(scene.registry.image_manifest({cached_layer("one"), cached_layer("two")}));
        std::string digest = scene.registry.add_manifest("v1", "application/vnd.oci.image.manifest.v1+json", manifest);
        if (index) {
            digest =
                scene.registry.add_manifest("v1", "application/vnd.oci.image.index.v1+json",
                                            R"({"schemaVersion":2,"manifests":[)" +
                                                descriptor("application/vnd.oci.image.manifest.v1+json", manifest,
                                                           R"(,"platform":{"os":"linux","architecture":"amd64"})") +
                                                "]}");
        }
        const std::string pinned = scene.registry.reference("@" + digest);
        for (int i = 0; i < 2; ++i) {
            const Outcome outcome =
                scene.pull(registry::PullPolicy::always, [&](auto& request) { request.reference = pinned; });
            CHECK_MESSAGE(outcome.code() == "ok", outcome.message());
            CHECK(scene.requests() == (i == 0 ? 4 + std::size_t{index} : 0));
        }
        CHECK(scene.pull().code() == "ok");
        for (const auto policy : {registry::PullPolicy::if_not_present, registry::PullPolicy::never}) {
            CHECK(scene.pull(policy).code() == "ok");
            CHECK(scene.requests() == 0);
        }
    }
}

TEST_CASE("a moved tag is seen with Always, not with IfNotPresent; Never needs the image") {
    CacheScene scene;
    const Outcome never = scene.pull(registry::PullPolicy::never);
    CHECK(never.code() == "image-not-cached");
    CHECK(never.exit() == Exit::not_found);
    CHECK(scene.requests() == 0);
    const std::string old_digest = scene.pull(registry::PullPolicy::if_not_present).result.digest;
    CHECK(scene.requests() == 4);
    scene.registry.add_image("v1", {cached_layer("three")});
    CHECK(scene.pull(registry::PullPolicy::if_not_present).result.digest == old_digest);
    const Outcome moved = scene.pull();
    CHECK(moved.files.at(k_modules + "/a.ko") == "three");
    CHECK(scene.pull(registry::PullPolicy::never).result.digest == moved.result.digest);
    const Outcome other =
        scene.pull(registry::PullPolicy::never, [](auto& request) { request.architecture = "arm64"; });
    CHECK(other.code() == "image-not-cached");
    CHECK(other.message().find("the cache has the image for linux/amd64, not for linux/arm64") != std::string::npos);
    const Outcome without =
        pull_from(scene.registry, [](auto& request) { request.policy = registry::PullPolicy::never; });
    CHECK(without.exit() == Exit::usage);
}

TEST_CASE("Never says why an image of the cache is not used, and its digest needs no reason") {
    CacheScene scene;
    const Outcome first = scene.pull();
    REQUIRE_MESSAGE(first.code() == "ok", first.message());
    const auto ask = [&](const std::function<void(registry::PullRequest&)>& tweak) {
        return scene.pull(registry::PullPolicy::never, tweak);
    };
    const Outcome careful = ask([](auto& request) { request.tls.insecure = false; });
    REQUIRE(careful.error);
    CHECK(careful.code() == "image-not-cached");
    CHECK(careful.message().find("pulled with --insecure") != std::string::npos);
    const std::string by_digest = scene.registry.reference("@" + first.result.digest);
    CHECK(careful.error->hint().find(by_digest) != std::string::npos);
    const Outcome keyed = ask([](auto& request) { request.tls.pinned_key = "sha256//a"; });
    CHECK(keyed.message().find("pulled without the pinned key") != std::string::npos);
    const Outcome named = ask([&](auto& request) {
        request.tls.insecure = false;
        request.reference = by_digest;
    });
    CHECK_MESSAGE(named.code() == "ok", named.message());
    CHECK(scene.requests() == 0);
}

TEST_CASE("damage in the cache is found on use and repaired") {
    CacheScene scene;
    static_cast<void>(scene.pull());
    const TestLayer layer = cached_layer("two");
    for (const char* damage : {"flip", "cut", "longer", "empty"}) {
        CAPTURE(damage);
        const std::string kind = damage;
        std::string bytes = layer.bytes;
        if (kind == "flip") {
            bytes[600] ^= 1;
        } else {
            bytes = kind == "cut" ? bytes.substr(0, 700) : kind == "longer" ? bytes + "x" : "";
        }
        fs::permissions(scene.blob(layer), fs::perms::owner_all);
        std::ofstream(scene.blob(layer), std::ios::binary | std::ios::trunc) << bytes;
        fs::remove_all(scene.directory + "/extractions");  // with what was extracted of it, the layer would not be read
        CHECK(registry::Cache(scene.directory).verify().damaged == std::vector<std::string>{sha256(layer.bytes)});
        const Outcome outcome = scene.pull(registry::PullPolicy::if_not_present);
        CHECK(outcome.code() == "ok");
        CHECK(outcome.files.at(k_modules + "/a.ko") == "two");
        CHECK(outcome.warned("cache-damaged"));
        CHECK(scene.requests() == 1);
        CHECK(registry::Cache(scene.directory).verify().damaged.empty());
    }
    // Records that are none are forgotten.
    for (const auto& item : fs::directory_iterator(scene.directory + "/images")) {
        std::ofstream(item.path()) << "{\"reference\":";
    }
    CHECK(registry::Cache(scene.directory).images().empty());
    CHECK(scene.pull(registry::PullPolicy::if_not_present).code() == "ok");
}

TEST_CASE("something else where the cache has a file is taken away, and waits for nobody") {
    CacheScene scene;
    const std::string digest = scene.pull().result.digest;
    const std::string saved = scene.top.path() + "/saved";
    fs::rename(scene.directory, saved);
    const auto only_file = [](const std::string& directory) {
        return fs::directory_iterator(directory)->path().native();
    };
    for (const char* part : {"layer", "extracted", "manifest", "list", "record"}) {
        for (const char* kind : {"directory", "full directory", "pipe", "link", "dangling link"}) {
            CAPTURE(part);
            CAPTURE(kind);
            fs::remove_all(scene.directory);
            fs::copy(saved, scene.directory, fs::copy_options::recursive);
            const std::string what = part;
            if (what == "layer") {
                fs::remove_all(scene.directory + "/extractions");
            }
            const std::string path =
                what == "layer"       ? scene.blob(cached_layer("two"))
                : what == "extracted" ? scene.directory + "/blobs/sha256/" + sha256("two").substr(7)
                : what == "manifest"  ? scene.directory + "/blobs/sha256/" + digest.substr(7)
                                      : only_file(scene.directory + (what == "list" ? "/extractions" : "/images"));
            REQUIRE(fs::exists(path));
            const std::string how = kind;
            const std::string aside = scene.top.path() + "/aside";
            fs::rename(path, aside);
            if (how.ends_with("directory")) {
                fs::create_directory(path);
                if (how.starts_with("full")) {
                    std::ofstream(path + "/file") << "x";
                }
            } else if (how == "pipe") {
                REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
            } else {
                fs::create_symlink(how == "link" ? aside : "/nonexistent", path);
            }
            const registry::CacheReport found = registry::Cache(scene.directory).verify();
            CHECK(found.damaged.size() + found.damaged_lists.size() + found.damaged_records.size() == 1);
            CHECK(found.incomplete.size() == (what == "layer" || what == "manifest" ? 1 : 0));
            const Outcome outcome = scene.pull();
            CHECK_MESSAGE(outcome.code() == "ok", outcome.message());
            CHECK(outcome.files.at(k_modules + "/a.ko") == "two");
            const registry::CacheReport left = registry::Cache(scene.directory).verify();
            CHECK(left.damaged.empty());
            CHECK(left.damaged_lists.empty());
            CHECK(left.damaged_records.empty());
            CHECK(left.incomplete.empty());
            CHECK(fs::is_regular_file(fs::symlink_status(path)));
            const Outcome again = scene.pull(registry::PullPolicy::never);
            CHECK(again.code() == "ok");
            CHECK_FALSE(again.warned("cache-"));
        }
    }
}

TEST_CASE("a damaged manifest is written anew by the pull that fetched it") {
    CacheScene scene;
    const std::string digest = scene.pull().result.digest;
    const std::string path = scene.directory + "/blobs/sha256/" + digest.substr(7);
    for (const char* bytes : {"", "{}", "longer"}) {
        CAPTURE(bytes);
        fs::permissions(path, fs::perms::owner_all);
        std::ofstream(path, std::ios::trunc) << (std::string(bytes) == "longer" ? std::string(9'000, ' ') : bytes);
        CHECK(scene.pull().code() == "ok");
        CHECK(registry::Cache(scene.directory).verify().damaged.empty());
        CHECK(scene.pull(registry::PullPolicy::never).code() == "ok");
    }
}

TEST_CASE("where there can be no cache a pull does without, unless it may ask nobody else") {
    CacheScene scene;
    for (const char* place : {"", "/blobs", "/blobs/sha256", "/images", "/extractions", "/lock"}) {
        CAPTURE(place);
        fs::remove_all(scene.directory);
        const std::string path = scene.directory + place;
        fs::create_directories(fs::path(path).parent_path());
        fs::permissions(fs::path(path).parent_path(), fs::perms::owner_all);
        if (std::string(place) == "/lock") {
            fs::create_directory(path);
        } else {
            std::ofstream(path) << "x";
        }
        fs::permissions(path, fs::perms::owner_all);
        const Outcome outcome = scene.pull();
        CHECK_MESSAGE(outcome.code() == "ok", outcome.message());
        CHECK(outcome.warned("cache-not-used"));
        CHECK(outcome.files.at(k_modules + "/a.ko") == "two");
        const Outcome never = scene.pull(registry::PullPolicy::never);
        REQUIRE(never.error);
        CHECK(never.exit() != Exit::ok);
        CHECK(never.error->hint().find(scene.directory) != std::string::npos);
    }
}

TEST_CASE("a directory of others does not become a cache, which would remove what it does not need") {
    CacheScene scene;
    fs::create_directories(scene.directory + "/blobs/sha256");
    const std::string theirs = scene.directory + "/blobs/sha256/" + sha256("theirs").substr(7);
    std::ofstream(theirs) << "theirs";
    std::ofstream(scene.directory + "/index.json") << "{}";
    const Outcome outcome = scene.pull();
    CHECK_MESSAGE(outcome.code() == "ok", outcome.message());
    CHECK(outcome.warned("cache-not-used"));
    const Outcome never = scene.pull(registry::PullPolicy::never);
    CHECK(never.code() == "no-cache");
    CHECK(never.error->hint().find("remove") == std::string::npos);
    CHECK(fs::exists(theirs));
    CHECK_FALSE(fs::exists(scene.directory + "/lock"));
    fs::remove_all(scene.directory);
    fs::create_directories(scene.directory + "/lost+found");
    CHECK_FALSE(scene.pull().warned("cache-not-used"));
}

TEST_CASE("nobody is told to remove a cache of somebody else") {
    CacheScene scene;
    REQUIRE(scene.pull().code() == "ok");
    const uid_t user = ::geteuid();
    fs::permissions(scene.top.path(), fs::perms::none);
    if (user == 0) {
        REQUIRE(::seteuid(65534) == 0);
    }
    const Outcome never = scene.pull(registry::PullPolicy::never);
    REQUIRE(::seteuid(user) == 0);
    fs::permissions(scene.top.path(), fs::perms::owner_all);
    REQUIRE(never.error);
    CHECK(never.exit() == Exit::no_permission);
    CHECK(never.error->hint() ==
          "run as the user whose cache it is, on a node root, or name another one: --cache-dir DIR");
}

TEST_CASE("a link in the place of a part of the cache leads nobody elsewhere") {
    CacheScene scene;
    const std::string outside = scene.directory + "-outside";
    for (const char* place : {"/blobs", "/blobs/sha256", "/images", "/extractions"}) {
        CAPTURE(place);
        for (const std::string& path : {scene.directory, outside}) fs::remove_all(path);
        REQUIRE(scene.pull().code() == "ok");
        fs::rename(scene.directory + place, outside);
        fs::create_directory_symlink(outside, scene.directory + place);
        std::ofstream(outside + "/of-others") << "x";
        const auto look = [&] {
            std::map<std::string, fs::file_time_type> found;
            for (const auto& entry : fs::recursive_directory_iterator(outside))
                found[entry.path().native()] = entry.last_write_time();
            return found;
        };
        const auto before = look();
        const Outcome outcome = scene.pull();
        CHECK_MESSAGE(outcome.code() == "ok", outcome.message());
        CHECK(outcome.warned("cache-not-used"));
        CHECK_THROWS_AS(registry::Cache{scene.directory}, Error);
        CHECK(look() == before);
    }
    fs::remove_all(outside);
}

TEST_CASE("the size limit keeps what was used last") {
    CacheScene scene;
    for (const char* tag : {"a", "b", "c"}) {
        scene.registry.add_image(tag, {cached_layer(std::string(20'000, tag[0]))});
    }
    const auto pull_tag = [&](const std::string& tag, std::uint64_t limit) {
        return scene.pull(registry::PullPolicy::always, [&](auto& request) {
            request.reference = scene.registry.reference(":" + tag);
            request.cache_bytes = limit;
        });
    };
    static_cast<void>(pull_tag("a", 1U << 20U));
    static_cast<void>(pull_tag("b", 1U << 20U));
    CHECK(registry::Cache(scene.directory).images().size() == 2);
    CHECK(pull_tag("c", 40'000).code() == "ok");
    const auto left = registry::Cache(scene.directory).images();
    REQUIRE(left.size() == 1);
    const Outcome large = pull_tag("a", 1000);
    CHECK(large.code() == "ok");
    CHECK(large.warned("cache-too-small"));
    registry::Cache cache(scene.directory);
    CHECK(cache.verify().blobs == 0);
    registry::Cache other(scene.directory);
    CHECK_FALSE(cache.prune(0).has_value());  // somebody else is at work
}

TEST_CASE("a cache that others may write to, or that cannot be written") {
    CacheScene scene;
    fs::create_directories(scene.directory);
    fs::permissions(scene.directory, fs::perms::all);
    const Outcome outcome = scene.pull();
    CHECK(outcome.code() == "cache-unsafe");
    CHECK(outcome.exit() == Exit::no_permission);
}

TEST_CASE("killed runs and two at once leave a cache that holds what it says") {
    CacheScene scene;
    const TestLayer large = plain_layer(TarBuilder().file(k_modules + "/a.ko", std::string(3U << 20U, 'k')).finish());
    scene.registry.add_image("v2", {large});
    for (int at = 1; at <= 3; ++at) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            registry::PullRequest request;
            request.reference = scene.registry.reference(":v2");
            request.kernels = {k_kernel};
            request.tls.insecure = true;
            request.cache_dir = scene.directory;
            int pieces = 0;
            request.progress = [&](std::uint64_t, std::uint64_t) {
                if (++pieces == at * 3) {
                    static_cast<void>(::raise(SIGKILL));
                }
            };
            const std::string out = scene.top.path() + "/out" + std::to_string(at);
            fs::create_directory(out);
            net::CurlHttpClient http;
            TestClock clock;
            static_cast<void>(registry::pull(request, out, http, clock));
            ::_exit(0);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        CHECK(registry::Cache(scene.directory).verify().damaged.empty());
        CHECK_FALSE(fs::exists(scene.blob(large)));
    }
    const registry::Cache beside(scene.directory);
    CHECK(scene
              .pull(registry::PullPolicy::always,
                    [&](auto& request) { request.reference = scene.registry.reference(":v2"); })
              .code() == "ok");
    CHECK(fs::exists(scene.blob(large)));
    CHECK(registry::Cache(scene.directory).images().size() == 1);
}

}
