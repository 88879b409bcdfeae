// SPDX-License-Identifier: Apache-2.0
// Row M67 of docs/hostile-images.md, the part that the host is asked for.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.hpp"
#include "kmod/host/firmware.hpp"
#include "sys/temp_dir.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

TEST_SUITE("kmod::unit") {

TEST_CASE("M67 a firmware path that the kernel cannot hold changes nothing") {
    FakeHost host;
    const std::string file = host.paths.sys + "/module/firmware_class/parameters/path";
    put(file, "/before\n");
    for (const std::string& path : {"/" + std::string(255, 'x'), std::string("/a\nb"), std::string("/a\033b"),
                                    std::string("relative/x"), std::string("//"), std::string("/x/..")}) {
        CAPTURE(path);
        try {
            static_cast<void>(kmod::set_firmware_search_path(host.paths, path));
            FAIL("expected a refusal");
        } catch (const Error& error) {
            CHECK(error.code() == "bad-firmware-path");
            CHECK(error.exit() == Exit::data);
        }
        CHECK(kmod::firmware_search_path(host.paths) == "/before");
    }
}

TEST_CASE("M67 a parameter that cannot be written is an error, not silence") {
    FakeHost host;
    const std::string file = host.paths.sys + "/module/firmware_class/parameters/path";
    std::filesystem::remove_all(file);
    std::filesystem::create_directories(file);
    CHECK_THROWS_AS(static_cast<void>(kmod::set_firmware_search_path(host.paths, "/lib/other")), Error);
}

TEST_CASE("M67 firmware goes to no directory of others, and through no link of theirs") {
    if (::geteuid() != 0) return;
    namespace fs = std::filesystem;
    const sys::TempDir directory("kmm-test-");
    const std::string top = directory.path();
    put(top + "/image/dev/a.bin", "firmware");
    fs::create_directory(top + "/victim");
    const auto told = [&](const auto& action) {
        try {
            action();
        } catch (const Error& error) {
            return error.code();
        }
        return std::string("ok");
    };
    const auto install = [&](const std::string& to) {
        return told([&] { (void)kmod::install_firmware(top + "/image", top + to, "owner"); });
    };
    const auto remove = [&](const std::string& to) {
        return told([&] { (void)kmod::remove_firmware(top + to, "owner"); });
    };
    const auto give_away = [&](const std::string& path) { REQUIRE(::lchown((top + path).c_str(), 65534, 65534) == 0); };
    fs::create_directory(top + "/pub");
    fs::create_directory_symlink("../victim", top + "/pub/dev");
    give_away("/pub/dev");
    CHECK(install("/pub") == "untrusted-file");
    give_away("/pub");
    CHECK(install("/pub") == "untrusted-file");
    CHECK(install("/pub/below") == "untrusted-file");
    CHECK(fs::is_empty(top + "/victim"));
    CHECK(std::distance(fs::directory_iterator(top + "/pub"), {}) == 1);

    CHECK(install("/own") == "ok");
    fs::rename(top + "/own/dev", top + "/own/moved");
    put(top + "/victim/a.bin", "firmware");
    fs::create_directory_symlink("../victim", top + "/own/dev");
    give_away("/own/dev");
    CHECK(remove("/own") == "untrusted-file");
    CHECK(fs::exists(top + "/victim/a.bin"));
    CHECK(remove("/pub") == "ok");  // nothing was put there
    put(top + "/pub/.kmm-worker-firmware", "");
    CHECK(remove("/pub") == "untrusted-file");
}

}
