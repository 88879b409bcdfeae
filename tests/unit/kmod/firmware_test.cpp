// SPDX-License-Identifier: Apache-2.0
#include "kmod/firmware.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

TEST_SUITE("kmod::unit") {

TEST_CASE("the search path is trimmed, compared and written without a newline") {
    FakeHost host;
    const std::string file = host.paths.sys + "/module/firmware_class/parameters/path";
    put(file, "/var/lib/firmware\n");
    CHECK(kmod::firmware_search_path(host.paths) == "/var/lib/firmware");
    CHECK_FALSE(kmod::set_firmware_search_path(host.paths, "/var/lib/firmware"));
    CHECK(kmod::set_firmware_search_path(host.paths, "/other"));
    CHECK(kmod::read_raw(file) == "/other");
    CHECK(kmod::set_firmware_search_path(host.paths, ""));
    CHECK(kmod::read_raw(file) == std::string(1, '\0'));
}

TEST_CASE("paths the kernel cannot hold are refused") {
    FakeHost host;
    for (const std::string& path : {"/" + std::string(255, 'x'), std::string("/a\nb"), std::string("relative")}) {
        CAPTURE(path);
        CHECK_THROWS_AS((void)kmod::set_firmware_search_path(host.paths, path), Error);
    }
    CHECK(kmod::set_firmware_search_path(host.paths, "/" + std::string(254, 'x')));
}

TEST_CASE("files are copied, recognised and removed only while unchanged") {
    sys::TempDir directory("kmm-firmware-");
    const std::string from = directory.path() + "/from";
    const std::string to = directory.path() + "/to";
    put(from + "/vendor/a.bin", "aaa");
    put(from + "/b.bin", "bbb");
    put(to + "/b.bin", "old");
    const auto files = kmod::copy_firmware(from, to);
    REQUIRE(files.size() == 2);
    CHECK(kmod::read_raw(to + "/vendor/a.bin") == "aaa");
    CHECK(kmod::read_raw(to + "/b.bin") == "bbb");
    put(to + "/b.bin", "changed by somebody");
    CHECK(kmod::remove_firmware(files) == std::vector<std::string>{to + "/b.bin"});
    CHECK_FALSE(std::filesystem::exists(to + "/vendor/a.bin"));
    CHECK(std::filesystem::exists(to + "/b.bin"));
}

}
