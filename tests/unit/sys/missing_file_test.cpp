// SPDX-License-Identifier: Apache-2.0
#include "sys/missing_file.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "sys/file_ops.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

TEST_SUITE("sys::unit") {
    TEST_CASE("the hint for a missing file names what to correct") {
        const sys::TempDir dir("kmm-test-");
        std::ofstream(dir.path() + "/cluster.yaml") << "x";
        std::filesystem::create_symlink("nowhere", dir.path() + "/link");
        const auto hint = [&](const std::string& name) { return sys::missing_file_hint(dir.path() + "/" + name); };
        CHECK(hint("clustr.yaml") == "did you mean " + dir.path() + "/cluster.yaml?");
        CHECK(hint("clustr.yaml/") == "did you mean " + dir.path() + "/cluster.yaml?");
        CHECK(hint("something") == "correct the name; ls " + dir.path() + " shows the names there");
        CHECK(hint("absent/x/y") == "correct the name: directory " + dir.path() + "/absent does not exist");
        CHECK(hint("cluster.yaml/x") == "correct the name: " + dir.path() + "/cluster.yaml is not a directory");
        CHECK(hint("cluster.yaml/") == "correct the name: " + dir.path() + "/cluster.yaml is not a directory");
        CHECK(hint("link") == "correct the symbolic link: it leads to nowhere");
        CHECK(sys::missing_file_hint("no-file-has-this-name") ==
              "correct the name; ls shows the names in the current directory");
        CHECK(sys::missing_file_hint("") == "correct the name: it is empty");
    }

    TEST_CASE("a file that does not exist has one code, other faults of opening have another") {
        const sys::TempDir dir("kmm-test-");
        try {
            (void)sys::read_file(dir.path() + "/absent");
            FAIL("read nothing");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::not_found);
            CHECK(error.code() == "file-not-found");
            CHECK(!error.hint().empty());
        }
        CHECK(sys::open_error(EIO, "x").code() == "io");
        CHECK(sys::open_error(EIO, "x").hint().empty());
    }

    TEST_CASE("a file is not written to a directory that does not exist") {
        const sys::TempDir dir("kmm-test-");
        CHECK_NOTHROW(sys::require_directory_of(dir.path() + "/new"));
        CHECK_NOTHROW(sys::require_directory_of("new"));
        try {
            sys::require_directory_of(dir.path() + "/absent/new");
            FAIL("accepted");
        } catch (const Error& error) {
            CHECK(error.code() == "file-not-found");
            CHECK(error.hint() == "mkdir -p " + dir.path() + "/absent");
        }
    }
}
