// SPDX-License-Identifier: Apache-2.0
#include "sys/directory.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <sys/wait.h>

#include "base/error.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
namespace fs = std::filesystem;

namespace {

void touch(const std::string& path) {
    std::ofstream(path) << "x";
}

}  // namespace

TEST_SUITE("sys::unit") {
    TEST_CASE("entries are sorted, typed, and links stay links") {
        const sys::TempDir dir("kmm-test-");
        touch(dir.path() + "/b");
        fs::create_directories(dir.path() + "/a/deep");
        touch(dir.path() + "/a/deep/file");
        fs::create_symlink("a", dir.path() + "/link");
        ::mkfifo((dir.path() + "/pipe").c_str(), 0600);
        const auto entries = sys::list_directory(dir.path());
        REQUIRE(entries.size() == 4);
        CHECK(entries[0].name == "a");
        CHECK(entries[0].type == sys::EntryType::directory);
        CHECK(entries[1].type == sys::EntryType::file);
        CHECK(entries[2].type == sys::EntryType::link);
        CHECK(entries[3].type == sys::EntryType::other);
        CHECK_THROWS_AS(static_cast<void>(sys::list_directory(dir.path() + "/none")), Error);
    }

    TEST_CASE("each entry once, also when they are removed meanwhile") {
        const sys::TempDir dir("kmm-test-");
        for (int number = 0; number < 5000; ++number) {
            touch(dir.path() + "/" + std::to_string(number));
        }
        std::set<std::string> seen;
        sys::each_entry(dir.path(), [&](const sys::DirectoryEntry& entry) {
            CHECK(entry.type == sys::EntryType::file);
            CHECK(seen.insert(entry.name).second);
            fs::remove(dir.path() + "/" + entry.name);
        });
        CHECK(seen.size() == 5000);
        CHECK(sys::list_directory(dir.path()).empty());
        CHECK_THROWS_AS(sys::each_entry(dir.path() + "/none", [](const auto&) {}), Error);
    }

    TEST_CASE("parents of paths") {
        struct Row {
            const char* path;
            const char* parent;
        };
        for (const Row& row : {Row{"a", "."}, Row{"a/b", "a"}, Row{"/a", "/"}, Row{"/", "/"}, Row{"/a/b/", "/a"},
                               Row{"a/b/c", "a/b"}, Row{".", "."}}) {
            CAPTURE(row.path);
            CHECK(sys::parent_of(row.path) == row.parent);
        }
    }

    TEST_CASE("directories get their mode whatever the umask") {
        const sys::TempDir dir("kmm-test-");
        const mode_t old = ::umask(0777);
        sys::make_directories(dir.path() + "/x/y", 0700);
        ::umask(old);
        struct stat info {};
        REQUIRE(::stat((dir.path() + "/x/y").c_str(), &info) == 0);
        CHECK((info.st_mode & 07777U) == 0700U);
        sys::make_directories(dir.path() + "/x/y", 0755);  // there already: left alone
        REQUIRE(::stat((dir.path() + "/x/y").c_str(), &info) == 0);
        CHECK((info.st_mode & 07777U) == 0700U);
        touch(dir.path() + "/file");
        CHECK_THROWS_AS(sys::make_directories(dir.path() + "/file", 0700), Error);
    }

    TEST_CASE("a temporary directory is private and goes away with its content") {
        std::string path;
        {
            sys::TempDir dir("kmm-test-");
            path = dir.path();
            struct stat info {};
            REQUIRE(::stat(path.c_str(), &info) == 0);
            CHECK((info.st_mode & 07777U) == 0700U);
            fs::create_directories(path + "/a/b");
            touch(path + "/a/b/c");
            const sys::TempDir moved = std::move(dir);
            CHECK(moved.path() == path);
        }
        CHECK_FALSE(fs::exists(path));
    }

    TEST_CASE("only directories of dead owners are stale") {
        const sys::TempDir base("kmm-test-");
        const pid_t pid = ::fork();
        if (pid == 0) {
            const sys::TempDir left("work-", base.path());
            ::raise(SIGKILL);
        }
        ::waitpid(pid, nullptr, 0);
        REQUIRE(sys::list_directory(base.path()).size() == 1);
        const sys::TempDir alive("work-", base.path());
        touch(base.path() + "/work-file");
        fs::create_directories(base.path() + "/other");
        CHECK(sys::remove_stale_temp_dirs("work-", base.path()) == 1);
        CHECK(fs::exists(alive.path()));
        CHECK(sys::list_directory(base.path()).size() == 3);
        CHECK(sys::remove_stale_temp_dirs("work-", base.path()) == 0);
    }
}

TEST_CASE("where nothing can be made, that is said") {
    CHECK_THROWS_WITH_AS(sys::make_directories("/proc/kmm-none/a/b", 0755),
                         doctest::Contains("cannot create directory /proc/kmm-none"), Error);
}

TEST_CASE(
    "a temporary directory where there is no place for one is a fault of the machine, not something that was not "
    "found") {
    const sys::TempDir dir("kmm-test-");
    touch(dir.path() + "/file");
    for (const char* place : {"/none", "/file", "/none/deeper"}) {
        CAPTURE(place);
        CHECK(sys::remove_stale_temp_dirs("kmm-test-", dir.path() + place) == 0);
        try {
            const sys::TempDir never("kmm-test-", dir.path() + place);
            FAIL("was made");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::io);
            CHECK(error.hint().find("TMPDIR") != std::string::npos);
            CHECK(error.message().find(place) != std::string::npos);
        }
    }
}

TEST_CASE("a temporary directory where nobody may write: the hint names TMPDIR") {
    struct statfs facts {};
    constexpr long k_sysfs = 0x62656572;
    if (::statfs("/sys", &facts) != 0 || facts.f_type != k_sysfs) {
        return;
    }  // nothing can be made in it, not even by root
    try {
        const sys::TempDir never("kmm-test-", "/sys");
        FAIL("was made");
    } catch (const Error& error) {
        CHECK(error.hint() == "set TMPDIR to a directory that this user can write");
        CHECK(error.message().find("/sys") != std::string::npos);
    }
}
