// SPDX-License-Identifier: Apache-2.0
// Row M67 of docs/hostile-images.md, the part that the host is asked for.
#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.hpp"
#include "kmod/host/firmware.hpp"
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

}
