// SPDX-License-Identifier: Apache-2.0
// The seal of a record: what is not exactly the text that was sealed, with this user's key, is not sealed.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "record/seal.hpp"
#include "sys/file_ops.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
namespace fs = std::filesystem;

TEST_SUITE("record::seal") {
    TEST_CASE("what was sealed here is known again, anything else is not") {
        const sys::TempDir one("kmm-seal-");
        const sys::TempDir other("kmm-seal-");
        const sys::TempDir home("kmm-seal-");
        ::setenv("XDG_STATE_HOME", home.path().c_str(), 1);  // root's key has a place of its own
        CHECK_FALSE(record::is_sealed(one.path(), "a"));
        if (!record::seal(one.path(), "a")) { return; }  // no place for a key here
        struct stat facts {};
        REQUIRE(::stat(record::key_path().c_str(), &facts) == 0);
        CHECK((facts.st_mode & 07777U) == 0600);
        CHECK(record::is_sealed(one.path(), "a"));
        CHECK_FALSE(record::is_sealed(one.path(), "b"));
        CHECK_FALSE(record::is_sealed(other.path(), "a"));
        fs::copy_file(one.path() + "/seal", other.path() + "/seal");
        CHECK(record::is_sealed(other.path(), "a"));  // the same text, by the same user
        sys::LinuxFileOps ops;
        sys::write_file_atomically(ops, other.path() + "/seal", std::string(64, '0') + "\n");
        CHECK_FALSE(record::is_sealed(other.path(), "a"));
        sys::write_file_atomically(ops, other.path() + "/seal", "");
        CHECK_FALSE(record::is_sealed(other.path(), "a"));
        if (::geteuid() == 0) { return; }  // root's real key stays as it is
        REQUIRE(::chmod(record::key_path().c_str(), 0644) == 0);
        CHECK_FALSE(record::is_sealed(one.path(), "a"));
        CHECK_FALSE(record::seal(one.path(), "a"));
    }
}
