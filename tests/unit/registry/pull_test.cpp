// SPDX-License-Identifier: Apache-2.0
// The way that works: what a good image leaves behind.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>

#include "image/manifest.hpp"
#include "registry/client/request.hpp"
#include "registry/pull/puller.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

TEST_SUITE("registry::unit") {

TEST_CASE("a good image is pulled, plain, gzip and zstd") {
    TarBuilder first;
    first.dir("./").dir("./opt/").dir("opt/lib").file("etc/passwd", "root").file(k_modules + "/a.ko", "module a");
    TarBuilder second;
    second.file(k_modules + "/sub/b.ko", std::string(700'000, 'b')).file("opt/lib/modules/other/c.ko", "other kernel");
    TarBuilder third;
    third.file("firmware/x/fw.bin", "firmware");
    const Outcome outcome = pull_layers({plain_layer(first.finish()), gzip_layer(second.finish()),
                                         zstd_layer(third.finish())},
                                        [](auto& request) { request.firmware_path = "/firmware"; });
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == std::map<std::string, std::string>{{k_modules + "/a.ko", "module a"},
                                                              {k_modules + "/sub/b.ko", std::string(700'000, 'b')},
                                                              {"firmware/x/fw.bin", "firmware"}});
    REQUIRE(outcome.listed.size() == 3);
    CHECK(outcome.listed[0].path == "/firmware/x/fw.bin");
    CHECK(outcome.listed[1].path == "/" + k_modules + "/a.ko");
    CHECK(outcome.listed[1].size == 8);
    CHECK("sha256:" + outcome.listed[1].sha256 == sha256("module a"));
    CHECK(outcome.result.kernels_found == std::vector<std::string>{k_kernel, "other"});
    CHECK(outcome.result.warnings.empty());
    CHECK(outcome.result.index_digest.empty());
}

TEST_CASE("a modprobe.d among the wanted files is reported, and extracted like any other file") {
    const std::string text = "options a x=1\ninstall a /bin/sh\n" + std::string(3U << 20U, '#');
    const Outcome outcome = pull_tar(TarBuilder()
                                         .file(k_modules + "/modprobe.d/a.conf", text)
                                         .file(k_modules + "/a.ko", "a")
                                         .file("etc/modprobe.d/b.conf", text)
                                         .finish(),
                                     [](auto& request) { request.limits.ratio = 1'000'000; });
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files ==
          std::map<std::string, std::string>{{k_modules + "/a.ko", "a"}, {k_modules + "/modprobe.d/a.conf", text}});
    CHECK(outcome.listed[1].size == text.size());
    CHECK(outcome.warned("image-command-ignored: /" + k_modules + "/modprobe.d/a.conf: 1 install or remove line"));
    CHECK(outcome.warned("image-command-ignored: /etc/modprobe.d/b.conf"));
}

TEST_CASE("a kernel that the image does not have is named, with those it has") {
    const Outcome outcome = pull_tar(TarBuilder().file("opt/lib/modules/5.10/x.ko", "x").finish());
    CHECK(outcome.exit() == Exit::not_found);
    CHECK(outcome.code() == "kernel-not-in-image");
    CHECK(outcome.detail("kernels") == "5.10");
}

TEST_CASE("M65 a disk that fills up while files are written") {
    // The process may write files of one mebibyte at most: the blob itself fits, the inflated module does not.
    const std::string tar = TarBuilder().file(k_modules + "/big.ko", std::string(3U << 20U, 'x')).finish();
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit small = before;
    small.rlim_cur = 1U << 20U;
    const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const Outcome extracting = pull_tar(tar, [](auto& request) { request.limits.ratio = 1'000'000; });
    const Outcome downloading = pull_layers({plain_layer(tar)});
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    static_cast<void>(std::signal(SIGXFSZ, old_action));
    for (const Outcome& outcome : {extracting, downloading}) {
        CHECK(outcome.code() == "io");
        CHECK(outcome.exit() == Exit::io);
        CHECK(outcome.message().find("(EFBIG)") != std::string::npos);
    }
}

TEST_CASE("a directory that is not empty, or is not there, is refused") {
    net::CurlHttpClient http;
    TestClock clock;
    registry::PullRequest request;
    request.reference = "127.0.0.1:1/x";
    request.kernels = {k_kernel};
    for (const char* directory : {"/", "/nonexistent/directory"}) {
        try {
            static_cast<void>(registry::pull(request, directory, http, clock));
            FAIL("expected a refusal");
        } catch (const Error& error) {
            CHECK(error.code() == "out-dir");
        }
    }
    for (const char* kernel : {"", "..", "a/b", "."}) {
        request.kernels = {kernel};
        try {
            static_cast<void>(registry::pull(request, "/nonexistent/directory", http, clock));
            FAIL("expected a refusal");
        } catch (const Error& error) {
            CHECK(error.code() == "bad-path");
        }
    }
}

TEST_CASE("the digest of the standard's test vector") {
    CHECK(sha256("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(registry::digest_of("abc", image::DigestAlgorithm::sha512).hex.substr(0, 32) ==
          "ddaf35a193617abacc417349ae204131");
}

TEST_CASE("pull: directories of the image are joined as KMM joins them") {
    TarBuilder tar;
    tar.file(k_modules + "/a.ko", "a").file("firmware/x", "x");
    const std::string text = tar.finish();
    for (const char* path : {"/firmware/../firmware", "/opt/../firmware/", "./firmware//x/.."}) {
        CHECK_MESSAGE(pull_tar(text, [&](auto& request) {
                          request.firmware_path = path;
                          request.dir_name = "/opt/none/..";
                      }).code() == "ok",
                      path);
    }
    for (const char* path : {"/firmware/..", "../firmware"}) {
        CHECK_MESSAGE(pull_tar(text, [&](auto& request) { request.firmware_path = path; }).code() == "bad-path", path);
    }
}

}
