// SPDX-License-Identifier: Apache-2.0
#include "sys/file_ops.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "sys/directory.hpp"
#include "sys/fd.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

TEST_SUITE("sys::unit") {
    TEST_CASE("an atomic write creates and replaces, keeps the mode, leaves nothing else") {
        const sys::TempDir dir("kmm-test-");
        sys::LinuxFileOps ops;
        const std::string path = dir.path() + "/file";
        const mode_t old = ::umask(0777);
        sys::write_file_atomically(ops, path, "one", 0640);
        ::umask(old);
        struct stat info {};
        REQUIRE(::stat(path.c_str(), &info) == 0);
        CHECK((info.st_mode & 07777U) == 0640U);
        sys::write_file_atomically(ops, path, "two", 0600);
        REQUIRE(::stat(path.c_str(), &info) == 0);
        CHECK((info.st_mode & 07777U) == 0640U);
        CHECK(sys::read_file(path) == "two");
        CHECK(sys::list_directory(dir.path()).size() == 1);
    }

    TEST_CASE("an atomic write keeps no mode that lets the file run as its owner, nor that of somebody else's file") {
        const sys::TempDir directory("kmm-file-ops");
        const std::string path = directory.path() + "/file";
        sys::LinuxFileOps ops;
        const auto mode = [&] {
            struct stat info {};
            REQUIRE(::lstat(path.c_str(), &info) == 0);
            CHECK(info.st_uid == ::geteuid());
            return info.st_mode & 07777U;
        };
        sys::write_file_atomically(ops, path, "one", 0640);
        REQUIRE(::chmod(path.c_str(), 07755) == 0);
        sys::write_file_atomically(ops, path, "two", 0640);
        CHECK(mode() == 0755U);
        // The mode of what a link leads to is not that of the link, which is replaced.
        REQUIRE(::chmod(path.c_str(), 0666) == 0);
        REQUIRE(::rename(path.c_str(), (path + ".real").c_str()) == 0);
        REQUIRE(::symlink("file.real", path.c_str()) == 0);
        sys::write_file_atomically(ops, path, "three", 0640);
        CHECK(mode() == 0640U);
        CHECK(sys::read_file(path + ".real") == "two");
        if (::geteuid() != 0) return;
        REQUIRE(::chmod(path.c_str(), 0666) == 0);
        REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
        sys::write_file_atomically(ops, path, "four", 0640);
        CHECK(mode() == 0640U);
    }

    TEST_CASE("a failed atomic write keeps the old file and removes its own") {
        const sys::TempDir dir("kmm-test-");
        sys::LinuxFileOps ops;
        const std::string path = dir.path() + "/file";
        std::filesystem::create_directory(path);  // a directory cannot be replaced by a file
        CHECK_THROWS_AS(sys::write_file_atomically(ops, path, "x"), Error);
        CHECK(sys::list_directory(dir.path()).size() == 1);
        CHECK_THROWS_AS(sys::write_file_atomically(ops, dir.path() + "/no/file", "x"), Error);
    }

    TEST_CASE("an atomic write does not take the place of a device") {
        const sys::TempDir dir("kmm-test-");
        sys::LinuxFileOps ops;
        const std::string path = dir.path() + "/null";
        std::filesystem::create_symlink("/dev/null", path);
        CHECK_THROWS_WITH_AS(sys::write_file_atomically(ops, path, "x"),
                             doctest::Contains("expected a regular file, found a device"), Error);
        CHECK(std::filesystem::is_symlink(path));
        CHECK(sys::list_directory(dir.path()).size() == 1);
    }

    TEST_CASE("an atomic write in pieces is whole or not there") {
        const sys::TempDir dir("kmm-test-");
        sys::LinuxFileOps ops;
        const std::string path = dir.path() + "/file";
        sys::write_file_atomically(ops, path, [](const sys::PutBytes& put) {
            put("one");
            put("");
            put(" two");
        });
        CHECK(sys::read_file(path) == "one two");
        const auto fail = [](const sys::PutBytes& put) {
            put("three");
            throw Error(Exit::data, "test", "the bytes end here");
        };
        CHECK_THROWS_AS(sys::write_file_atomically(ops, path, fail), Error);
        CHECK(sys::read_file(path) == "one two");
        CHECK(sys::list_directory(dir.path()).size() == 1);
    }

    TEST_CASE("create is exclusive and follows no link") {
        const sys::TempDir dir("kmm-test-");
        sys::LinuxFileOps ops;
        const std::string path = dir.path() + "/file";
        const sys::Fd first(ops.create(path, 0600));
        CHECK(first.get() > 2);
        CHECK_THROWS_AS(static_cast<void>(ops.create(path, 0600)), Error);
        std::filesystem::create_symlink(path, dir.path() + "/link");
        CHECK_THROWS_AS(static_cast<void>(ops.open_append(dir.path() + "/link")), Error);
        const sys::Fd again(ops.open_append(path));
        ops.write(again.get(), "a");
        ops.write(again.get(), "b");
        ops.sync(again.get());
        CHECK(sys::read_file(path) == "ab");
    }

    TEST_CASE("reading stops at the limit and says when a file is absent") {
        const sys::TempDir dir("kmm-test-");
        std::ofstream(dir.path() + "/file") << std::string(1000, 'x');
        CHECK(sys::read_file(dir.path() + "/file", 1000).size() == 1000);
        try {
            static_cast<void>(sys::read_file(dir.path() + "/file", 999));
            FAIL("read too much");
        } catch (const Error& error) {
            CHECK(error.code() == "file-too-large");
        }
        try {
            static_cast<void>(sys::read_file(dir.path() + "/none"));
            FAIL("read nothing");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::not_found);
        }
    }

    TEST_CASE("reserved space does not change the size") {
        const sys::TempDir dir("kmm-test-");
        sys::LinuxFileOps ops;
        const sys::Fd fd(ops.create(dir.path() + "/file", 0600));
        sys::reserve_space(fd.get(), 64U << 10U);
        struct stat info {};
        REQUIRE(::fstat(fd.get(), &info) == 0);
        CHECK(info.st_size == 0);
    }

    TEST_CASE("temporary files of killed writers are found by their name") {
        const sys::TempDir dir("kmm-test-");
        std::ofstream(dir.path() + "/.a.12-0.kmm-tmp") << "x";
        std::ofstream(dir.path() + "/a.kmm-tmp") << "x";
        std::ofstream(dir.path() + "/.b") << "x";
        CHECK(sys::remove_temp_files(dir.path()) == 1);
        CHECK(sys::list_directory(dir.path()).size() == 2);
    }
}
