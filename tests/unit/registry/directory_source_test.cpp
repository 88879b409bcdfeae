// SPDX-License-Identifier: Apache-2.0
// Directories of modules and unpacked images. The rules are those of a registry's images.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>

#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("a directory of modules, flat or as an unpacked image") {
    const sys::TempDir top("kmm-test-");
    const std::string flat = top.path() + "/flat";
    put_file(flat + "/a.ko", "module a");
    put_file(flat + "/sub/b.ko.xz", "module b");
    put_file(flat + "/README", "not a module");
    put_file(flat + "/firmware/x.bin", "firmware");
    const Outcome outcome = pull_local("dir:" + flat, [](auto& request) { request.firmware_path = "/firmware"; });
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == std::map<std::string, std::string>{{k_modules + "/a.ko", "module a"},
                                                              {k_modules + "/sub/b.ko.xz", "module b"},
                                                              {"firmware/x.bin", "firmware"}});
    CHECK(outcome.result.digest ==
          sha256(sha256("firmware").substr(7) + "  /firmware/x.bin\n" + sha256("module a").substr(7) + "  /" +
                 k_modules + "/a.ko\n" + sha256("module b").substr(7) + "  /" + k_modules + "/sub/b.ko.xz\n"));

    const std::string image = top.path() + "/image";
    put_file(image + "/" + k_modules + "/c.ko", "module c");
    put_file(image + "/" + k_modules + "/modules.dep", "ignored");
    put_file(image + "/opt/lib/modules/5.10/d.ko", "other kernel");
    put_file(image + "/etc/shadow", "not wanted");
    fs::create_symlink("c.ko", image + "/" + k_modules + "/link.ko");
    const Outcome unpacked = pull_local("dir:" + image);
    CHECK(unpacked.files ==
          std::map<std::string, std::string>{{k_modules + "/c.ko", "module c"}, {k_modules + "/link.ko", "-> c.ko"}});
    CHECK(unpacked.result.kernels_found == std::vector<std::string>{"5.10", k_kernel});
    CHECK(pull_local("dir:" + image, [](auto& request) { request.kernels = {"4.19"}; }).code() ==
          "kernel-not-in-image");
    fs::create_symlink(k_kernel, image + "/opt/lib/modules/4.19");
    CHECK(pull_local("dir:" + image, [](auto& request) { request.kernels = {"4.19"}; }).files ==
          std::map<std::string, std::string>{{"opt/lib/modules/4.19/c.ko", "module c"},
                                             {"opt/lib/modules/4.19/link.ko", "-> c.ko"}});
}

TEST_CASE("an unpacked image is searched through its links, as a container would see it") {
    const sys::TempDir top("kmm-test-");
    const std::string image = top.path() + "/rootfs";
    const auto at_root = [](auto& request) { request.dir_name = "/"; request.firmware_path = "/lib/firmware"; };
    put_file(image + "/usr/lib/modules/" + k_kernel + "/a.ko", "a");
    put_file(image + "/usr/lib/modules/5.10/other.ko", "of another kernel");
    put_file(image + "/srv/fw/x.bin", "f");
    fs::create_symlink("usr/lib", image + "/lib");
    fs::create_symlink("/srv/fw", image + "/usr/lib/firmware");
    const Outcome outcome = pull_local("dir:" + image, at_root);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files ==
          std::map<std::string, std::string>{{"lib/modules/" + k_kernel + "/a.ko", "a"}, {"lib/firmware/x.bin", "f"}});
    CHECK(outcome.result.kernels_found == std::vector<std::string>{"5.10", k_kernel});
    const Outcome all = pull_local("dir:" + image, [&](auto& request) {
        at_root(request);
        request.kernels.clear();
        request.all_kernels = true;
    });
    CHECK(all.files.size() == 3);
    fs::create_symlink(image, top.path() + "/link");
    CHECK(pull_local("dir:" + top.path() + "/link", at_root).files == outcome.files);
    put_file(top.path() + "/out/x.bin", "not of the image");
    for (const char* target : {"../../../out", "/../../out", "firmware", "/"}) {
        CAPTURE(target);
        fs::remove(image + "/usr/lib/firmware");
        fs::create_symlink(target, image + "/usr/lib/firmware");
        CHECK(pull_local("dir:" + image, at_root).code() == "image-unsafe");
    }
    fs::remove(image + "/usr/lib/firmware");
    fs::remove(image + "/lib");
    fs::create_symlink("../out", image + "/lib");
    CHECK(pull_local("dir:" + image, at_root).code() == "image-unsafe");
    // Flat, with firmware behind a link.
    put_file(top.path() + "/flat/b.ko", "b");
    put_file(top.path() + "/flat/blobs/y.bin", "y");
    fs::create_symlink("blobs", top.path() + "/flat/fw");
    CHECK(pull_local("dir:" + top.path() + "/flat", [](auto& request) { request.firmware_path = "/fw"; }).files ==
          std::map<std::string, std::string>{{k_modules + "/b.ko", "b"}, {"fw/y.bin", "y"}});
}

TEST_CASE("files of modprobe.d in a directory, through a link and beside modules") {
    const sys::TempDir top("kmm-test-");
    const std::string image = top.path() + "/rootfs";
    put_file(image + "/opt/lib/modules/" + k_kernel + "/a.ko", "a");
    put_file(image + "/usr/share/demo/modprobe.d/a.conf", "install a /bin/false");
    fs::create_directory_symlink("/usr/share/demo", image + "/opt/demo");
    const Outcome outcome =
        pull_local("dir:" + image, [](auto& request) { request.modprobed_dir = "/opt/demo/modprobe.d"; });
    CHECK(outcome.files == std::map<std::string, std::string>{{k_modules + "/a.ko", "a"},
                                                              {"opt/demo/modprobe.d/a.conf", "install a /bin/false"}});
    CHECK(outcome.result.warnings.empty());
    put_file(top.path() + "/flat/a.ko", "a");
    put_file(top.path() + "/flat/conf/a.conf", "options a");
    CHECK(pull_local("dir:" + top.path() + "/flat", [](auto& request) {
              request.firmware_path = "/conf";
              request.modprobed_dir = "/conf";
          }).files.at("conf/a.conf") == "options a");
    CHECK(pull_local("dir:" + image, [](auto& request) { request.modprobed_dir = "/"; }).code() == "bad-path");
}

TEST_CASE("an unpacked image with its modules elsewhere is no flat directory") {
    const sys::TempDir top("kmm-test-");
    const std::string image = top.path() + "/rootfs";
    put_file(image + "/usr/lib/modules/" + k_kernel + "/a.ko", "a");
    put_file(image + "/usr/lib/modules/5.10/other.ko", "of another kernel");
    const Outcome outcome = pull_local("dir:" + image);
    CHECK(outcome.code() == "kernel-not-in-image");
    CHECK(outcome.error->hint().find("/usr") != std::string::npos);
}

TEST_CASE("directories of modules that are refused") {
    const sys::TempDir top("kmm-test-");
    CHECK(pull_local("dir:" + top.path() + "/none").code() == "image-not-found");
    put_file(top.path() + "/empty/README", "nothing here");
    const Outcome empty = pull_local("dir:" + top.path() + "/empty");
    CHECK(empty.code() == "kernel-not-in-image");
    CHECK(empty.message() ==
          "expected the directory /opt/lib/modules or modules (.ko, .ko.gz, .ko.xz, .ko.zst) in the directory, found "
          "neither");
    put_file(top.path() + "/skopeo/version", "Directory Transport Version: 1.1\n");
    put_file(top.path() + "/skopeo/manifest.json", "{}");
    put_file(top.path() + "/layout/oci-layout", R"({"imageLayoutVersion": "1.0.0"})");
    const auto all = [](auto& request) {
        request.kernels.clear();
        request.all_kernels = true;
    };
    for (const auto& [form, hint] : {std::pair("/skopeo", "oci:DIR:TAG"), std::pair("/layout", "oci:DIR[:TAG]")}) {
        CHECK(pull_local("dir:" + top.path() + form).error->hint().find(hint) != std::string::npos);
        CHECK(pull_local("dir:" + top.path() + form, all).error->hint().find(hint) != std::string::npos);
    }
    put_file(top.path() + "/flat/a.ko", "x");
    CHECK(pull_local("dir:" + top.path() + "/flat", all).exit() == Exit::usage);
    fs::create_symlink("/etc/passwd", top.path() + "/flat/b.ko");
    CHECK(pull_local("dir:" + top.path() + "/flat").code() == "image-unsafe");
    fs::remove(top.path() + "/flat/b.ko");
    REQUIRE(::mkfifo((top.path() + "/flat/c.ko").c_str(), 0600) == 0);
    CHECK(pull_local("dir:" + top.path() + "/flat").code() == "image-unsafe");
}

}
