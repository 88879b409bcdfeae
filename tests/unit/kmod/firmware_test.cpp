// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/firmware.hpp"

#include <map>
#include <set>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "digest/digest.hpp"
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
    CHECK(kmod::firmware_search_path(host.paths).empty());
}

TEST_CASE("paths the kernel cannot hold are refused") {
    FakeHost host;
    for (const std::string& path : {"/" + std::string(255, 'x'), std::string("/a\nb"), std::string("relative")}) {
        CAPTURE(path);
        CHECK_THROWS_AS((void)kmod::set_firmware_search_path(host.paths, path), Error);
    }
    CHECK(kmod::set_firmware_search_path(host.paths, "/" + std::string(254, 'x')));
}

using Paths = std::vector<std::string>;

TEST_CASE("firmware is copied, owned and put back as it was") {
    sys::TempDir directory("kmm-firmware-");
    const std::string from = directory.path() + "/from";
    const std::string to = directory.path() + "/to";
    put(from + "/vendor/a.bin", "aaa");
    put(from + "/b.bin", "bbb");
    put(from + "/same.bin", "same");
    put(to + "/b.bin", "old");
    put(to + "/same.bin", "same");
    CHECK(kmod::install_firmware(from, to, "demo").size() == 3);
    CHECK(kmod::read_raw(to + "/vendor/a.bin") == "aaa");
    CHECK(kmod::read_raw(to + "/b.bin") == "bbb");

    SUBCASE("everything is as before") {
        CHECK(kmod::remove_firmware(to, "other").empty());
        CHECK(kmod::read_raw(to + "/b.bin") == "bbb");
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK_FALSE(std::filesystem::exists(to + "/vendor/a.bin"));
        CHECK(kmod::read_raw(to + "/b.bin") == "old");
        CHECK(kmod::read_raw(to + "/same.bin") == "same");
        CHECK_FALSE(std::filesystem::exists(to + "/.kmm-worker-firmware"));
        CHECK(kmod::remove_firmware(to, "demo").empty());
    }
    SUBCASE("what somebody changed stays") {
        put(to + "/b.bin", "changed by somebody");
        CHECK(kmod::remove_firmware(to, "demo") == Paths{to + "/b.bin"});
        CHECK(kmod::read_raw(to + "/b.bin") == "changed by somebody");
        CHECK(kmod::read_raw(to + "/b.bin.kmm-saved") ==
              "old");  // a load that was killed halfway looks the same: nothing is lost
        (void)kmod::install_firmware(from, to, "demo");
        CHECK(kmod::read_raw(to + "/b.bin.kmm-saved") == "changed by somebody");
        CHECK(kmod::read_raw(to + "/b.bin.kmm-saved.1") == "old");
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK(kmod::read_raw(to + "/b.bin") == "changed by somebody");
        CHECK_FALSE(std::filesystem::exists(to + "/b.bin.kmm-saved"));
    }
    SUBCASE("what cannot be removed is told as that, stays listed, and goes the next time") {
        std::filesystem::remove(to + "/b.bin");
        std::filesystem::create_directory(to + "/b.bin");
        try {
            (void)kmod::remove_firmware(to, "demo");
            FAIL("no error");
        } catch (const Error& error) {
            CHECK(error.message().starts_with("cannot remove " + to + "/b.bin: "));
        }
        CHECK_FALSE(std::filesystem::exists(to + "/vendor/a.bin"));
        std::filesystem::remove(to + "/b.bin");
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK(kmod::read_raw(to + "/b.bin") == "old");
        CHECK_FALSE(std::filesystem::exists(to + "/.kmm-worker-firmware"));
    }
    SUBCASE("an image does not write the list, nor what is kept beside it") {
        for (const char* name :
             {"/.kmm-worker-firmware", "/vendor/.kmm-worker-firmware", "/b.bin.kmm-saved", "/vendor/a.bin.kmm-new"}) {
            CAPTURE(name);
            put(from + name, std::string(64, 'a') + " created demo same.bin\n");
            CHECK_THROWS_AS((void)kmod::install_firmware(from, to, "second"), Error);
            CHECK(std::filesystem::remove(from + name));
        }
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK(kmod::read_raw(to + "/b.bin") == "old");
        CHECK(kmod::read_raw(to + "/same.bin") == "same");
    }
    SUBCASE("a second owner keeps the files") {
        (void)kmod::install_firmware(from, to, "second");
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK(kmod::read_raw(to + "/vendor/a.bin") == "aaa");
        CHECK(kmod::remove_firmware(to, "second").empty());
        CHECK_FALSE(std::filesystem::exists(to + "/vendor/a.bin"));
        CHECK(kmod::read_raw(to + "/b.bin") == "old");
    }
    SUBCASE("without the list, what stood before is kept still") {
        CHECK(std::filesystem::remove(to + "/.kmm-worker-firmware"));
        (void)kmod::install_firmware(from, to, "demo");
        CHECK(kmod::read_raw(to + "/b.bin.kmm-saved") == "old");
    }
    SUBCASE("without the list, other bytes lose nothing of what stood before either") {
        for (const char* bytes : {"newer", "newest", "newest"}) {
            CHECK(std::filesystem::remove(to + "/.kmm-worker-firmware"));
            put(from + "/b.bin", bytes);
            (void)kmod::install_firmware(from, to, "demo");
        }
        CHECK(kmod::read_raw(to + "/b.bin") == "newest");
        CHECK(kmod::read_raw(to + "/b.bin.kmm-saved") == "newer");
        CHECK(kmod::read_raw(to + "/b.bin.kmm-saved.1") == "old");
        CHECK(kmod::read_raw(to + "/b.bin.kmm-saved.2") == "bbb");
        CHECK_FALSE(std::filesystem::exists(to + "/b.bin.kmm-saved.3"));
        put(from + "/c.bin.kmm-saved.1", "of an image");
        CHECK_THROWS_AS((void)kmod::install_firmware(from, to, "demo"), Error);
    }
    SUBCASE("another owner with other bytes is told whose they replace") {
        put(from + "/b.bin", "newer");
        const auto files = kmod::install_firmware(from, to, "second");
        CHECK(files.at(0).others == Paths{"demo"});
        CHECK(files.at(1).others.empty());
        CHECK(kmod::install_firmware(from, to, "second").at(0).others.empty());
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK(kmod::read_raw(to + "/b.bin") == "newer");
        CHECK(kmod::remove_firmware(to, "second").empty());
        CHECK(kmod::read_raw(to + "/b.bin") == "old");
    }
    SUBCASE("a link inside is the file that it means") {
        std::filesystem::create_symlink("vendor/a.bin", from + "/link.bin");
        std::filesystem::create_directory_symlink("vendor", from + "/other");
        std::filesystem::create_symlink("nowhere", from + "/dangling.bin");
        CHECK(kmod::install_firmware(from, to, "demo").size() == 5);
        CHECK(kmod::read_raw(to + "/link.bin") == "aaa");
        CHECK(kmod::read_raw(to + "/other/a.bin") == "aaa");
        CHECK_FALSE(std::filesystem::is_symlink(to + "/link.bin"));
    }
    SUBCASE("a link that leaves the directory is refused") {
        put(directory.path() + "/secret", "host");
        std::filesystem::create_symlink("../secret", from + "/link.bin");
        CHECK_THROWS_AS((void)kmod::install_firmware(from, to, "demo"), Error);
        CHECK_FALSE(std::filesystem::exists(to + "/link.bin"));
    }
    SUBCASE("a damaged list is no empty one") {
        put(to + "/.kmm-worker-firmware", "nonsense\n");
        CHECK_THROWS_AS((void)kmod::remove_firmware(to, "demo"), Error);
        CHECK_THROWS_AS((void)kmod::install_firmware(from, to, "demo"), Error);
        put(to + "/.kmm-worker-firmware", std::string(64, 'a') + " created demo ../../etc/passwd\n");
        CHECK_THROWS_AS((void)kmod::remove_firmware(to, "demo"), Error);
    }
}

namespace {

/// Does the real thing, and knows which bytes and names would be there after a power cut.
class WatchedOps final : public sys::FileOps {
public:
    std::map<std::string, bool> open_names;  // by path: renamed there, and the directory not synced since
    std::set<int> synced;
    bool unsynced_rename = false;
    int files = 0;

    int create(const std::string& path, unsigned mode) override {
        last_ = real_.create(path, mode);
        synced.erase(last_);
        created_[path] = last_;
        return last_;
    }
    int open_append(const std::string& path) override { return real_.open_append(path); }
    void write(int fd, std::string_view bytes) override { real_.write(fd, bytes); }
    void sync(int fd) override {
        real_.sync(fd);
        synced.insert(fd);
    }
    void rename(const std::string& from, const std::string& to) override {
        if (const auto made = created_.find(from); made != created_.end()) {
            unsynced_rename = unsynced_rename || !synced.contains(made->second);
            ++files;
        }
        real_.rename(from, to);
        open_names[to] = true;
    }
    void sync_dir(const std::string& directory) override {
        real_.sync_dir(directory);
        std::erase_if(open_names,
                      [&](const auto& name) { return name.first.substr(0, name.first.rfind('/')) == directory; });
    }

private:
    sys::LinuxFileOps real_;
    std::map<std::string, int> created_;
    int last_ = -1;
};

}  // namespace

TEST_CASE("a list of installed firmware that cannot be read is not taken for none") {
    sys::TempDir directory("kmm-firmware-");
    const std::string from = directory.path() + "/from", to = directory.path() + "/to";
    put(from + "/a.bin", "aaa");
    put(to + "/a.bin", "old");
    put(to + "/.kmm-worker-firmware/here", "a directory, whose bytes nobody can read");
    const auto code_of = [](const auto& step) {
        try {
            step();
        } catch (const Error& error) {
            return error.code();
        }
        return std::string("none");
    };
    CHECK(code_of([&] { (void)kmod::install_firmware(from, to, "demo"); }) == "firmware-manifest");
    CHECK(code_of([&] { (void)kmod::remove_firmware(to, "demo"); }) == "firmware-manifest");
    CHECK(kmod::read_raw(to + "/a.bin") == "old");
}

TEST_CASE("installed firmware, and what is put back, is on the disk under its name before it is relied on") {
    const sys::TempDir directory("kmm-firmware-");
    const std::string from = directory.path() + "/from";
    const std::string to = directory.path() + "/new/to";
    put(from + "/vendor/a.bin", "aaa");
    put(from + "/b.bin", "bbb");
    put(to + "/b.bin", "old");
    WatchedOps ops;
    CHECK(kmod::install_firmware(ops, from, to, "demo").size() == 2);
    CHECK(ops.files == 3);  // and the list
    CHECK_FALSE(ops.unsynced_rename);
    CHECK(ops.open_names.empty());
    CHECK(kmod::remove_firmware(ops, to, "demo").empty());
    CHECK(kmod::read_raw(to + "/b.bin") == "old");
    CHECK(ops.open_names.empty());
}

TEST_CASE("firmware is what was proven when the image was extracted, else nothing is placed") {
    sys::TempDir directory("kmm-firmware-");
    const std::string from = directory.path() + "/from";
    const std::string to = directory.path() + "/to";
    put(from + "/a.bin", "aaa");
    put(from + "/b.bin", "bbb");
    std::filesystem::create_symlink("b.bin", from + "/link.bin");
    const std::string root = std::filesystem::canonical(from).native();
    const kmod::FileDigests proven{{root + "/a.bin", digest::sha256_hex("aaa")},
                                   {root + "/b.bin", digest::sha256_hex("bbb")}};
    CHECK(kmod::install_firmware(from, to, "demo", proven).size() == 3);
    CHECK(kmod::remove_firmware(to, "demo").empty());
    put(from + "/b.bin", "changed");
    try {
        (void)kmod::install_firmware(from, to, "demo", proven);
        FAIL("changed firmware was taken");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::integrity);
        CHECK(error.code() == "firmware-changed");
    }
    CHECK_FALSE(std::filesystem::exists(to + "/a.bin"));
    CHECK_FALSE(std::filesystem::exists(to + "/link.bin"));
}

TEST_CASE("firmware with the longest name that a file can have is replaced and put back") {
    const sys::TempDir directory{"kmm-firmware-"};
    const std::string from = directory.path() + "/from", to = directory.path() + "/to";
    const std::vector<std::string> names{std::string(255, 'n'), std::string(254, 'n') + "m", std::string(245, 'n')};
    for (const auto& name : names) {
        put(from + "/" + name, "new " + name);
        put(to + "/" + name, "old " + name);
    }
    CHECK(kmod::install_firmware(from, to, "demo").size() == names.size());
    for (const auto& name : names) CHECK(kmod::read_raw(to + "/" + name) == "new " + name);
    CHECK(kmod::remove_firmware(to, "demo").empty());
    for (const auto& name : names) CHECK(kmod::read_raw(to + "/" + name) == "old " + name);
    CHECK(std::distance(std::filesystem::directory_iterator(to), std::filesystem::directory_iterator()) ==
          static_cast<std::ptrdiff_t>(names.size()));
}

TEST_CASE("directories that were made for firmware go with it, and no others") {
    const sys::TempDir directory{"kmm-firmware-"};
    const std::string from = directory.path() + "/from", to = directory.path() + "/made/too/to";
    put(from + "/vendor/deep/a.bin", "aaa");
    put(from + "/there/b.bin", "bbb");
    const auto is_there = [&](const std::string& below) { return std::filesystem::exists(to + below); };

    SUBCASE("all of them, up to what was there before") {
        (void)kmod::install_firmware(from, to, "demo");
        (void)kmod::install_firmware(from, to, "demo");
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK_FALSE(std::filesystem::exists(directory.path() + "/made"));
        CHECK(std::filesystem::exists(from));
    }
    SUBCASE("not one that stood there, also if it is empty") {
        std::filesystem::create_directories(to + "/there");
        (void)kmod::install_firmware(from, to, "demo");
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK(is_there("/there"));
        CHECK_FALSE(is_there("/vendor"));
        CHECK_FALSE(is_there("/.kmm-worker-firmware"));
    }
    SUBCASE("not one that another module's firmware, or a file of somebody else, is in") {
        (void)kmod::install_firmware(from, to, "demo");
        put(directory.path() + "/second/vendor/c.bin", "ccc");
        (void)kmod::install_firmware(directory.path() + "/second", to, "second");
        put(to + "/there/mine.bin", "mine");
        CHECK(kmod::remove_firmware(to, "demo").empty());
        CHECK_FALSE(is_there("/vendor/deep"));
        CHECK(is_there("/vendor/c.bin"));
        std::filesystem::create_directories(to + "/vendor/deep");  // by somebody else, meanwhile
        CHECK(is_there("/there/mine.bin"));
        CHECK(kmod::remove_firmware(to, "second").empty());
        CHECK(is_there("/vendor/deep"));
        CHECK(is_there("/there/mine.bin"));
    }
    SUBCASE("an image that is refused leaves none") {
        std::filesystem::create_symlink("/etc/passwd", from + "/out.bin");
        CHECK_THROWS_AS((void)kmod::install_firmware(from, to, "demo"), Error);
        CHECK_FALSE(std::filesystem::exists(directory.path() + "/made"));
    }
    SUBCASE("a list with a directory outside of its own is damaged") {
        put(to + "/.kmm-worker-firmware", "directory vendor/../../x\n");
        CHECK_THROWS_AS((void)kmod::remove_firmware(to, "demo"), Error);
    }
}

}
