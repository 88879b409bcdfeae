// SPDX-License-Identifier: Apache-2.0
// Row M66 of docs/hostile-registries.md: a pull that is killed leaves nothing that the next one stumbles over.
#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "registry/client/request.hpp"
#include "registry/pull/puller.hpp"
#include "sys/fd.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

#include <fcntl.h>

using namespace kmm;
using namespace kmm::test;

namespace fs = std::filesystem;

namespace {

void pull_into(const std::string& directory, const std::string& reference,
               const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    registry::PullRequest request;
    request.reference = reference;
    request.kernels = {k_kernel};
    request.progress = progress;
    net::CurlHttpClient http;
    TestClock clock;
    static_cast<void>(registry::pull(request, directory, http, clock));
}

/// A docker archive of one plain layer with one module.
std::string write_archive(const std::string& path, const std::string& module) {
    const TestLayer layer = plain_layer(TarBuilder().file(k_modules + "/a.ko", module).finish());
    const std::string config =
        R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[")" + layer.diff_id + R"("]}})";
    std::ofstream(path, std::ios::binary) << TarBuilder()
                                                 .file("l.tar", layer.bytes)
                                                 .file("c.json", config)
                                                 .file("manifest.json", R"([{"Config":"c.json","Layers":["l.tar"]}])")
                                                 .finish();
    return "docker-archive:" + path;
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("M66 the next pull into the same directory clears what a killed one left") {
    const sys::TempDir top("kmm-test-");
    const std::string reference = write_archive(top.path() + "/image.tar", std::string(900'000, 'm'));
    const std::string out = top.path() + "/out";
    for (int at = 1; at <= 3; ++at) {
        fs::remove_all(out);
        fs::create_directory(out);
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            int pieces = 0;
            pull_into(out, reference, [&](std::uint64_t, std::uint64_t) {
                if (++pieces == at) {
                    static_cast<void>(::raise(SIGKILL));
                }
            });
            ::_exit(0);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(WIFSIGNALED(status));
        CHECK_FALSE(fs::is_empty(out));
        CHECK_FALSE(fs::exists(out + "/opt"));  // nothing half-done is visible
        pull_into(out, reference, nullptr);
        CHECK(fs::file_size(out + "/" + k_modules + "/a.ko") == 900'000);
        CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) == 1);
    }
}

TEST_CASE("M66 what had been moved into place when the kill came is cleared too; nothing else is") {
    const sys::TempDir top("kmm-test-");
    const std::string reference = write_archive(top.path() + "/image.tar", "m");
    const std::string out = top.path() + "/out";
    fs::create_directories(out + "/.kmm-pull/tree");
    fs::create_directories(out + "/opt/half");
    std::ofstream(out + "/.kmm-pull/names") << "../victim\n..\nopt\nopt/half\nopt/half/a.ko\nopt/link";
    std::ofstream(out + "/opt/half/a.ko") << "ours";
    fs::create_symlink("half", out + "/opt/link");
    std::ofstream(top.path() + "/victim") << "stays";
    pull_into(out, reference, nullptr);
    CHECK(fs::exists(out + "/" + k_modules + "/a.ko"));
    CHECK_FALSE(fs::exists(out + "/opt/half"));
    CHECK(fs::exists(top.path() + "/victim"));

    const std::string foreign = top.path() + "/foreign";
    fs::create_directories(foreign + "/.kmm-pull");
    std::ofstream(foreign + "/mine") << "stays";
    CHECK_THROWS_AS(pull_into(foreign, reference, nullptr), Error);
    CHECK(fs::exists(foreign + "/mine"));
}

TEST_CASE("M66 what others put into the directory of a killed pull stays") {
    const sys::TempDir top("kmm-test-");
    const std::string reference = write_archive(top.path() + "/image.tar", "m");
    for (const bool moved : {true, false}) {  // had the kill come after, or before, the tree was moved out
        CAPTURE(moved);
        const std::string out = top.path() + (moved ? "/moved" : "/not-moved");
        fs::create_directories(out + "/.kmm-pull/tree" + (moved ? "" : "/opt/lib"));
        std::ofstream(out + "/.kmm-pull/names") << "opt\nopt/lib\nopt/lib/a.ko";
        fs::create_directories(out + "/opt/lib");
        std::ofstream(out + "/opt/lib/a.ko") << "x";
        std::ofstream(out + "/opt/lib/mine") << "stays";
        CHECK_THROWS_AS(pull_into(out, reference, nullptr), Error);  // not empty
        CHECK(fs::exists(out + "/opt/lib/mine"));
        CHECK(fs::exists(out + "/opt/lib/a.ko") != moved);
        CHECK_FALSE(fs::exists(out + "/.kmm-pull"));
    }
}

TEST_CASE("a pull that fails removes what it made, and nothing of others") {
    const sys::TempDir top("kmm-test-");
    const std::string reference = write_archive(top.path() + "/image.tar", std::string(900'000, 'm'));
    const std::string out = top.path() + "/out";
    const auto left = [&] {
        std::set<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(out))
            names.insert(fs::relative(entry.path(), out).native());
        return names;
    };
    fs::create_directory(out);
    SUBCASE("it fails while it reads") {
        CHECK_THROWS_AS(pull_into(out, reference, [&](std::uint64_t, std::uint64_t) {
            std::ofstream(out + "/mine") << "x";
            throw Error(Exit::io, "io", "no more");
        }), Error);
        CHECK(left() == std::set<std::string>{"mine"});
    }
    SUBCASE("a name that it needs was taken: neither replaced nor removed") {
        CHECK_THROWS_AS(pull_into(out, reference, [&](std::uint64_t, std::uint64_t) {
            fs::create_directories(out + "/opt");
            std::ofstream(out + "/opt/mine") << "x";
        }), Error);
        CHECK(left() == std::set<std::string>{"opt", "opt/mine"});
    }
    SUBCASE("even an empty directory") {
        CHECK_THROWS_AS(
            pull_into(out, reference, [&](std::uint64_t, std::uint64_t) { fs::create_directories(out + "/opt"); }),
            Error);
        CHECK(left() == std::set<std::string>{"opt"});
    }
    SUBCASE("another pull took its work directory for left over") {
        CHECK_THROWS_AS(pull_into(out, reference, [&](std::uint64_t, std::uint64_t) {
            fs::rename(out + "/.kmm-pull", top.path() + "/aside");
            fs::create_directories(out + "/.kmm-pull/tree");
            throw Error(Exit::io, "io", "no more");
        }), Error);
        CHECK(left() == std::set<std::string>{".kmm-pull", ".kmm-pull/tree"});
    }
}

TEST_CASE("M66 a directory where another pull is at work is left alone") {
    const sys::TempDir top("kmm-test-");
    const std::string reference = write_archive(top.path() + "/image.tar", "m");
    const std::string out = top.path() + "/out";
    fs::create_directories(out + "/.kmm-pull/tree");
    const sys::Fd owner(::open((out + "/.kmm-pull").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(::flock(owner.get(), LOCK_EX) == 0);
    try {
        pull_into(out, reference, nullptr);
        FAIL("expected a refusal");
    } catch (const Error& error) {
        CHECK(error.code() == "out-dir");
        CHECK(error.message().find("expected no other pull") != std::string::npos);
    }
    CHECK(fs::exists(out + "/.kmm-pull/tree"));
}

}
