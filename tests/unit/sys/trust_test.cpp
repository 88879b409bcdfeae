// SPDX-License-Identifier: Apache-2.0
// Whose files count. The judgement is root's: as another user only that nothing is refused can be tried.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sys/directory.hpp"
#include "sys/enter.hpp"
#include "sys/file_ops.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "sys/temp_dir.hpp"
#include "sys/trust.hpp"
#include "sys/trust_script.hpp"
#include "sys/trusted_tree.hpp"

using namespace kmm;
namespace fs = std::filesystem;

namespace {

constexpr unsigned k_somebody = 65534;

void put(const std::string& path, const std::string& text) {
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, path, text, 0600);
}

void give_away(const std::string& path) { REQUIRE(::lchown(path.c_str(), k_somebody, k_somebody) == 0); }

std::string code_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) { return error.code(); }
    return "";
}

struct Right {
    unsigned tag, may, id;
};

constexpr unsigned k_nobody_named = 0xffffffff;
constexpr Right k_named_user{0x02, 6, k_somebody};
constexpr Right k_mask{0x10, 6, k_nobody_named};

/// Gives `path` the access control list of `rights` besides those of its owner, group (may read) and others (may read).
/// False where the file system has none.
bool list_access(const std::string& path, const std::vector<Right>& rights) {
    std::string bytes("\2\0\0\0", 4);
    const auto put_number = [&](unsigned value, unsigned count) {
        for (; count > 0; --count, value >>= 8U) { bytes.push_back(static_cast<char>(value & 0xffU)); }
    };
    std::vector<Right> all{{0x01, 7, k_nobody_named}, {0x04, 4, k_nobody_named}, {0x20, 5, k_nobody_named}};
    all.insert(all.end(), rights.begin(), rights.end());
    std::sort(all.begin(), all.end(), [](const Right& a, const Right& b) { return a.tag < b.tag; });
    for (const Right& right : all) {
        put_number(right.tag, 2);
        put_number(right.may, 2);
        put_number(right.id, 4);
    }
    return ::setxattr(path.c_str(), "system.posix_acl_access", bytes.data(), bytes.size(), 0) == 0;
}

/// A directory on a file system with access control lists; "" if this machine has none, which is a fault in CI.
std::string place_with_lists() {
    for (const char* place : {"/tmp", "/var/tmp", "/dev/shm", "/run"}) {
        if (::access(place, W_OK) != 0) { continue; }
        const sys::TempDir dir("kmm-trust-", place);
        if (list_access(dir.path(), {k_named_user, k_mask})) { return place; }
    }
    CHECK_MESSAGE(std::getenv("CI") == nullptr, "no file system here has access control lists");
    return "";
}

/// What the shell's function says of `path`, with the tools of `path_variable`.
std::string changeable(const std::string& path, const std::string& path_variable) {
    sys::ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c",
                 "tool() { \"$@\"; }\n" + std::string(sys::k_trust_script) + "changeable \"$1\"", "sh", path};
    spec.extra_env = {{"PATH", path_variable}};
    return sys::run_process(spec).out;
}

}  // namespace

TEST_SUITE("sys::trust") {
    TEST_CASE("a program that somebody else may change is not run by root, wherever in PATH it is") {
        const sys::TempDir dir("kmm-trust-");
        const std::string program = dir.path() + "/bin/kmm-chk";
        fs::create_directories(dir.path() + "/bin");
        put(program, "#!/bin/sh\n");
        REQUIRE(::chmod(program.c_str(), 0755) == 0);
        const std::string path = ::getenv("PATH") == nullptr ? "" : ::getenv("PATH");
        REQUIRE(::setenv("PATH", (dir.path() + "/bin:" + path).c_str(), 1) == 0);
        const auto codes = [&] {
            std::string all;
            for (const std::string& name : {program, std::string("kmm-chk"), std::string("./kmm-chk")}) {
                all += code_of([&] { sys::require_trusted_program(name, dir.path() + "/bin"); }) + ",";
            }
            return all + code_of([&] { sys::require_program("kmm-chk"); });
        };
        CHECK(codes() == ",,,");
        if (::geteuid() == 0) {
            const std::string refused = "untrusted-file,untrusted-file,untrusted-file,untrusted-file";
            give_away(program);
            CHECK(codes() == refused);
            REQUIRE(::lchown(program.c_str(), 0, 0) == 0);
            REQUIRE(::chmod((dir.path() + "/bin").c_str(), 0777) == 0);
            CHECK(codes() == refused);
        }
        fs::remove(program);
        CHECK(code_of([&] { sys::require_program("kmm-chk"); }) == "command-not-found");
        REQUIRE(::setenv("PATH", path.c_str(), 1) == 0);
    }

    TEST_CASE("programs of root find their own programs only where nobody else puts any") {
        if (::geteuid() != 0) { return; }
        const sys::TempDir dir("kmm-trust-");
        const std::string before = ::getenv("PATH") == nullptr ? "" : ::getenv("PATH");
        for (const char* name : {"/own", "/given", "/sticky", "/root/usr/bin", "/root/srv"}) {
            fs::create_directories(dir.path() + name);
        }
        give_away(dir.path() + "/given");
        give_away(dir.path() + "/root/srv");
        REQUIRE(::chmod((dir.path() + "/sticky").c_str(), 01777) == 0);
        const auto path_after = [&](const std::string& path, const std::string& root, std::size_t left_out) {
            REQUIRE(::setenv("PATH", path.c_str(), 1) == 0);
            CHECK(sys::take_trusted_path(root).size() == left_out);
            return std::string(::getenv("PATH"));
        };
        const std::string own = dir.path() + "/own";
        const std::string others = dir.path() + "/given:" + dir.path() + "/given/absent:" + dir.path() + "/sticky:" +
                                   dir.path() + "/sticky/absent::bin";
        const fs::path start = fs::current_path();
        fs::current_path(dir.path() + "/given");
        CHECK(path_after(others + ":/usr/bin:" + own, "", 6) == "/usr/bin:" + own);
        fs::current_path(own);
        CHECK(path_after("bin::/usr/bin", "", 0) == own + "/bin:" + own + ":/usr/bin");
        fs::current_path(start);
        CHECK(path_after(dir.path() + "/given", "", 1).starts_with("/usr/local/sbin:"));
        CHECK(path_after("/srv:/usr/bin", "", 0) == "/srv:/usr/bin");
        CHECK(path_after("/srv:/usr/bin", dir.path() + "/root", 1) == "/usr/bin");
        REQUIRE(::setenv("PATH", before.c_str(), 1) == 0);
    }

    TEST_CASE("a file counts for root if root owns it and nobody else may write it") {
        const sys::TempDir dir("kmm-trust-");
        const std::string file = dir.path() + "/f";
        put(file, "text");
        CHECK_FALSE(sys::trust_fault(file));
        CHECK(sys::read_trusted_file(file, "file") == "text");
        CHECK_FALSE(sys::trust_fault(dir.path() + "/absent/f"));
        CHECK(code_of([&] { (void)sys::read_trusted_file(dir.path() + "/absent", "file"); }) == "file-not-found");
        if (::geteuid() != 0) { return; }
        for (const mode_t mode : {mode_t{0666}, mode_t{0602}, mode_t{0622}}) {
            REQUIRE(::chmod(file.c_str(), mode) == 0);
            REQUIRE(::chown(file.c_str(), 0, k_somebody) == 0);
            CHECK(code_of([&] { (void)sys::read_trusted_file(file, "file"); }) == "untrusted-file");
        }
        REQUIRE(::chmod(file.c_str(), 0600) == 0);
        give_away(file);
        CHECK(sys::trust_fault(file)->find("belongs to user 65534") != std::string::npos);
        CHECK(code_of([&] { sys::require_trusted(file, "file"); }) == "untrusted-file");
    }

    TEST_CASE("so do the directories and links on the way to it") {
        if (::geteuid() != 0) { return; }
        const sys::TempDir dir("kmm-trust-");
        fs::create_directories(dir.path() + "/home/a");
        put(dir.path() + "/home/a/f", "x");
        const std::string file = dir.path() + "/home/a/f";
        CHECK_FALSE(sys::trust_fault(file));
        REQUIRE(::chmod((dir.path() + "/home").c_str(), 0777) == 0);
        CHECK(sys::trust_fault(file));
        CHECK(sys::trust_fault(dir.path() + "/home/new/f"));
        REQUIRE(::chmod((dir.path() + "/home").c_str(), 01777) == 0);
        CHECK_FALSE(sys::trust_fault(file));
        REQUIRE(::symlink("home/../home/a", (dir.path() + "/link").c_str()) == 0);
        CHECK_FALSE(sys::trust_fault(dir.path() + "/link/f"));
        give_away(dir.path() + "/link");
        CHECK(sys::trust_fault(dir.path() + "/link/f"));
        CHECK(code_of([&] { (void)sys::open_directory(dir.path() + "/link"); }) == "untrusted-file");
        CHECK(code_of([&] { sys::require_own_link(dir.path() + "/link"); }) == "untrusted-file");
        give_away(dir.path() + "/home");
        CHECK(sys::trust_fault(file));
        CHECK(sys::open_directory(dir.path() + "/home/a"));  // nobody else's link leads there
    }

    TEST_CASE("whom an access control list names may write, though the mode shows the group root") {
        if (::geteuid() != 0) { return; }
        const std::string place = place_with_lists();
        if (place.empty()) { return; }
        const sys::TempDir dir("kmm-trust-", place);
        const std::string above = dir.path() + "/d";
        const std::string file = above + "/f";
        fs::create_directory(above);
        put(file, "text");
        REQUIRE(::chmod(file.c_str(), 0664) == 0);
        CHECK_FALSE(sys::trust_fault(file));  // the group root has no members but root
        for (const std::string& path : {file, above}) {
            REQUIRE(list_access(path, {k_named_user, k_mask}));
            CHECK(sys::trust_fault(file).value_or("").starts_with("user 65534 may write " + path));
            CHECK(code_of([&] { (void)sys::read_trusted_file(file, "file"); }) == "untrusted-file");
            CHECK(changeable(file, "/usr/bin:/bin") == path + "\n");
            REQUIRE(list_access(path, {{0x08, 2, 7}, k_mask}));
            CHECK(sys::trust_fault(file).value_or("").starts_with("group 7 may write " + path));
            REQUIRE(list_access(path, {k_named_user, {0x10, 4, k_nobody_named}}));  // the mask takes the right away
            CHECK_FALSE(sys::trust_fault(file));
            REQUIRE(list_access(path, {{0x02, 6, 0}, {0x08, 6, 0}, k_mask}));
            CHECK_FALSE(sys::trust_fault(file));
            CHECK(changeable(file, "/usr/bin:/bin") == path + "\n");  // ls shows no names
            REQUIRE(::removexattr(path.c_str(), "system.posix_acl_access") == 0);
            REQUIRE(::chmod(path.c_str(), 0775) == 0);
            CHECK_FALSE(sys::trust_fault(file));
            CHECK(changeable(file, "/usr/bin:/bin").empty());
        }
    }

    TEST_CASE("where ls does not mark access control lists, the shell takes it that the group root has members") {
        if (::geteuid() != 0) { return; }
        const sys::TempDir dir("kmm-trust-");
        const std::string file = dir.path() + "/f";
        put(file, "text");
        put(dir.path() + "/ls", "#!/bin/sh\n[ \"$1\" != --version ] || exit 1\nexec /bin/ls \"$@\"\n");
        REQUIRE(::chmod((dir.path() + "/ls").c_str(), 0755) == 0);
        const std::string tools = dir.path() + ":/usr/bin:/bin";
        CHECK(changeable(file, tools).empty());
        REQUIRE(::chmod(file.c_str(), 0664) == 0);
        CHECK(changeable(file, tools) == file + "\n");
        CHECK(changeable(file, "/usr/bin:/bin").empty());
    }

    TEST_CASE("a tree counts if all that is in it does, also where links lead") {
        const sys::TempDir dir("kmm-trust-");
        const std::string tree = dir.path() + "/tree";
        fs::create_directories(tree + "/a/b");
        fs::create_directories(dir.path() + "/elsewhere/c");
        put(tree + "/a/b/f", "x");
        put(dir.path() + "/elsewhere/c/f", "x");
        fs::create_directory_symlink(dir.path() + "/elsewhere", tree + "/a/link");
        fs::create_directory_symlink("..", tree + "/a/loop");
        fs::create_symlink("absent", tree + "/a/dangling");
        sys::require_trusted_tree(tree, "tree");
        sys::require_trusted_tree(dir.path() + "/absent", "tree");
        if (::geteuid() != 0) { return; }
        for (const std::string& path : {tree + "/a/b/f", tree + "/a/b", tree + "/a/link", tree + "/a/dangling",
                                        dir.path() + "/elsewhere/c/f", dir.path() + "/elsewhere/c"}) {
            give_away(path);
            CHECK_MESSAGE(code_of([&] { sys::require_trusted_tree(tree, "tree"); }) == "untrusted-file", path);
            REQUIRE(::lchown(path.c_str(), 0, 0) == 0);
        }
        sys::require_trusted_tree(tree, "tree");
    }

    TEST_CASE("what is named by a descriptor counts: <(...) of a shell") {
        int ends[2] = {};
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        REQUIRE(::write(ends[1], "x", 1) == 1);
        ::close(ends[1]);
        CHECK(sys::read_trusted_file("/dev/fd/" + std::to_string(ends[0]), "file") == "x");
        ::close(ends[0]);
    }

    TEST_CASE("removing follows no link, at no depth") {
        const sys::TempDir dir("kmm-trust-");
        fs::create_directories(dir.path() + "/victim/sub");
        put(dir.path() + "/victim/precious", "x");
        fs::create_directories(dir.path() + "/busy/a/b/c");
        put(dir.path() + "/busy/a/b/c/f", "x");
        fs::create_directory_symlink(dir.path() + "/victim", dir.path() + "/busy/a/b/link");
        fs::create_directory_symlink(dir.path() + "/victim", dir.path() + "/top");
        const sys::Fd at = sys::open_directory(dir.path());
        sys::remove_entry(at.get(), "busy");
        sys::remove_entry(at.get(), "top");
        sys::remove_entry(at.get(), "absent");
        CHECK_FALSE(fs::exists(dir.path() + "/busy"));
        CHECK_FALSE(fs::is_symlink(dir.path() + "/top"));
        CHECK(fs::exists(dir.path() + "/victim/precious"));
        sys::remove_tree(dir.path() + "/victim/");
        CHECK_FALSE(fs::exists(dir.path() + "/victim"));
        sys::remove_tree(dir.path() + "/absent/x");
    }

    TEST_CASE("a scratch directory is made nowhere where somebody else could put another in its place") {
        if (::geteuid() != 0) { return; }
        const sys::TempDir dir("kmm-trust-");
        fs::create_directory(dir.path() + "/open");
        REQUIRE(::chmod((dir.path() + "/open").c_str(), 0777) == 0);
        CHECK(code_of([&] { const sys::TempDir inside("x-", dir.path() + "/open"); }) == "untrusted-file");
        REQUIRE(::chmod((dir.path() + "/open").c_str(), 01777) == 0);
        CHECK(code_of([&] { const sys::TempDir inside("x-", dir.path() + "/open"); }) == "");
    }
}
