// SPDX-License-Identifier: Apache-2.0
// A module that is loaded a second time, with its firmware somewhere else: everything is put back at unload all the
// same.
#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/host/firmware.hpp"
#include "kmod/load/procedure.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

/// An image with the module `demo` and its firmware, which goes to /first, then somewhere else.
struct FirmwareRig {
    FakeHost host;
    FakeClock clock;
    FakeKernel kernel{host};
    sys::TempDir out{"kmm-image-"};
    kmod::ModuleIndex index;
    std::string image_firmware = out.path() + "/fw", first = out.path() + "/first", second = out.path() + "/second";

    FirmwareRig() {
        put(out.path() + "/opt/demo.ko", make_ko(KoSpec{}));
        put(image_firmware + "/demo.bin", "firmware");
        index = kmod::ModuleIndex::build(out.path() + "/opt", out.path());
        set_path("/of-the-admin");
    }
    void set_path(const std::string& path) const {
        put(host.paths.sys + "/module/firmware_class/parameters/path", path);
    }
    [[nodiscard]] std::string path() const { return kmod::firmware_search_path(host.paths); }
    kmod::Report load(const std::string& from, const std::string& search_path) {
        const kmod::LoadRequest request{"demo", {}, {}, {}};
        const auto checked = kmod::preflight(index, request, host.paths);
        return kmod::load_modules(index, checked, request, {from, search_path}, {host.paths, kernel, clock, {}});
    }
    kmod::Report unload() { return kmod::unload_modules({{"demo"}}, {host.paths, kernel, clock, {}}); }
    [[nodiscard]] static bool has_firmware(const std::string& directory) {
        return std::filesystem::exists(directory + "/demo.bin");
    }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("a second load that names another firmware path, or none, loses nothing that is to be put back") {
    FirmwareRig rig;
    (void)rig.load(rig.image_firmware, rig.first);
    CHECK(rig.path() == rig.first);
    CHECK(rig.has_firmware(rig.first));

    SUBCASE("another path: the files move, and the path of before the first load comes back") {
        CHECK(rig.load(rig.image_firmware, rig.second).warnings.empty());
        CHECK(rig.path() == rig.second);
        CHECK(rig.has_firmware(rig.second));
        CHECK_FALSE(rig.has_firmware(rig.first));
        (void)rig.unload();
        CHECK(rig.path() == "/of-the-admin");
        CHECK_FALSE(rig.has_firmware(rig.second));
    }
    SUBCASE("the same path in another form: the files stay") {
        std::filesystem::create_directory_symlink(rig.first, rig.second);
        for (const std::string& form : {rig.first + "//", rig.second}) {
            CHECK(rig.load(rig.image_firmware, form).warnings.empty());
            CHECK(rig.has_firmware(rig.first));
            const auto record = kmod::read_record(rig.host.paths, "demo");
            REQUIRE(record);
            CHECK(record->former_firmware_directories.empty());
        }
        (void)rig.unload();
        CHECK(rig.path() == "/of-the-admin");
        CHECK_FALSE(rig.has_firmware(rig.first));
    }
    SUBCASE("another path, and killed before the files had moved") {
        auto record = *kmod::read_record(rig.host.paths, "demo");
        record.former_firmware_directories = {rig.first};
        record.firmware_directory = rig.second;
        kmod::write_record(rig.host.paths, record);
        (void)rig.unload();
        CHECK(rig.path() == "/of-the-admin");
        CHECK_FALSE(rig.has_firmware(rig.first));
        CHECK_FALSE(kmod::read_record(rig.host.paths, "demo").has_value());
    }
    SUBCASE("another path, and killed before it was set") {
        auto record = *kmod::read_record(rig.host.paths, "demo");
        record.former_firmware_directories = {rig.first};
        record.firmware_directory = rig.second;
        record.new_firmware_path = rig.second;
        record.former_firmware_path = rig.first;
        kmod::write_record(rig.host.paths, record);
        SUBCASE("") {}
        SUBCASE("and again") {
            (void)rig.load(rig.image_firmware, rig.second);
            CHECK(rig.path() == rig.second);
            CHECK(kmod::read_record(rig.host.paths, "demo")->former_firmware_path.empty());
        }
        SUBCASE("and back") {
            (void)rig.load(rig.image_firmware, rig.first);
            CHECK(rig.path() == rig.first);
        }
        (void)rig.unload();
        CHECK(rig.path() == "/of-the-admin");
        CHECK_FALSE(rig.has_firmware(rig.first));
        CHECK_FALSE(rig.has_firmware(rig.second));
    }
    SUBCASE("the same path, after somebody else had set theirs: theirs comes back") {
        rig.set_path("/theirs");
        (void)rig.load(rig.image_firmware, rig.first);
        CHECK(rig.path() == rig.first);
        (void)rig.unload();
        CHECK(rig.path() == "/theirs");
        CHECK_FALSE(rig.has_firmware(rig.first));
    }
    SUBCASE("no path: it stays as the first load set it") {
        (void)rig.load(rig.image_firmware, "");
        CHECK(rig.path() == rig.first);
        (void)rig.load("", "");
        CHECK(rig.path() == rig.first);
        (void)rig.unload();
        CHECK(rig.path() == "/of-the-admin");
        CHECK_FALSE(rig.has_firmware(rig.first));
    }
    SUBCASE("a path that somebody else set meanwhile is theirs, whatever we set before") {
        rig.set_path(rig.second);
        (void)rig.load(rig.image_firmware, rig.second);
        (void)rig.unload();
        CHECK(rig.path() == rig.second);
        CHECK_FALSE(rig.has_firmware(rig.second));
        CHECK_FALSE(rig.has_firmware(rig.first));
    }
    SUBCASE("another path, after somebody else had set theirs: theirs comes back") {
        rig.set_path("/theirs");
        (void)rig.load(rig.image_firmware, rig.second);
        (void)rig.unload();
        CHECK(rig.path() == "/theirs");
    }
    SUBCASE("a place that cannot be written: the live module keeps its firmware and the path to it") {
        put(rig.out.path() + "/file", "no directory");
        CHECK_THROWS_AS((void)rig.load(rig.image_firmware, rig.out.path() + "/file/below"), Error);
        CHECK(rig.path() == rig.first);
        CHECK(rig.has_firmware(rig.first));
        (void)rig.unload();
        CHECK(rig.path() == "/of-the-admin");
        CHECK_FALSE(rig.has_firmware(rig.first));
    }
}

TEST_CASE("links below the firmware directory lead where the host has them, not here") {
    FirmwareRig rig;
    rig.host.paths.root = rig.out.path() + "/mnt";
    const std::string host = rig.host.paths.root, elsewhere = "/kmm-test-firmware";
    put(host + elsewhere + "/old.bin", "old");
    put(host + "/fw/.keep", "");
    std::filesystem::create_symlink(elsewhere, host + "/fw/vendor");
    std::filesystem::create_symlink("../../../../.." + elsewhere + "/deep", host + "/fw/above");
    std::filesystem::create_directories(host + elsewhere + "/deep");
    put(rig.image_firmware + "/vendor/new/a.bin", "a");
    put(rig.image_firmware + "/vendor/old.bin", "new");
    put(rig.image_firmware + "/above/b.bin", "b");

    CHECK(rig.load(rig.image_firmware, "/fw").warnings.empty());
    CHECK_FALSE(std::filesystem::exists(elsewhere));
    CHECK(kmod::read_raw(host + elsewhere + "/new/a.bin") == "a");
    CHECK(kmod::read_raw(host + elsewhere + "/old.bin") == "new");
    CHECK(kmod::read_raw(host + elsewhere + "/deep/b.bin") == "b");
    (void)rig.unload();
    CHECK_FALSE(std::filesystem::exists(host + elsewhere + "/new"));
    CHECK_FALSE(std::filesystem::exists(host + elsewhere + "/deep/b.bin"));
    CHECK(kmod::read_raw(host + elsewhere + "/old.bin") == "old");
}

TEST_CASE("a file that the kernel reads instead is found behind links, too") {
    FirmwareRig rig;
    put(rig.out.path() + "/blobs/demo-1.bin", "of the host");
    std::filesystem::create_directories(rig.host.directory.path() + "/lib/firmware/updates");
    const std::string link = rig.host.directory.path() + "/lib/firmware/updates/demo.bin";
    std::string target = rig.out.path() + "/blobs/demo-1.bin", expected = link;
    SUBCASE("here") {}
    SUBCASE("below the host's root") {
        rig.host.paths.root = rig.host.directory.path();
        put(rig.host.paths.root + "/blobs/demo-1.bin", "of the host");
        target = "/blobs/demo-1.bin";
        expected = "/lib/firmware/updates/demo.bin";
    }
    std::filesystem::create_symlink(target, link);
    rig.set_path("");
    const std::string to = rig.host.paths.root.empty() ? rig.host.directory.path() + "/lib/firmware" : "/lib/firmware";
    const kmod::FirmwareDirectory directory = kmod::firmware_of_host(rig.host.paths, to);
    const auto installed = kmod::install_firmware(rig.image_firmware, directory, "demo");
    CHECK(kmod::firmware_before(rig.host.paths, directory.path, installed) == std::vector<std::string>{expected});
    std::filesystem::remove(link);
    CHECK(kmod::firmware_before(rig.host.paths, directory.path, installed).empty());
}

TEST_CASE("a file without compression is read instead of a compressed one, in every directory") {
    FirmwareRig rig;
    rig.set_path("");
    put(rig.image_firmware + "/acme/fw.bin.xz", "of the image");
    put(rig.image_firmware + "/other.zst", "of the image");
    put(rig.image_firmware + "/no.gz", "of the image");
    const std::string to = rig.host.directory.path() + "/lib/firmware";
    std::filesystem::create_directories(to + "/acme");
    put(to + "/no", "of the host");
    const auto installed = kmod::install_firmware(rig.image_firmware, to, "demo");
    CHECK(kmod::firmware_instead(rig.host.paths, installed).empty());

    put(to + "/acme/fw.bin", "of the host");
    CHECK(kmod::firmware_instead(rig.host.paths, installed) == std::vector<std::string>{to + "/acme/fw.bin"});
    std::filesystem::create_directories(to + "/updates");
    put(to + "/updates/other", "of the host");
    CHECK(kmod::firmware_instead(rig.host.paths, installed) ==
          std::vector<std::string>{to + "/acme/fw.bin", to + "/updates/other"});

    put(rig.image_firmware + "/acme/fw.bin", "of the image, too");
    const auto both = kmod::install_firmware(rig.image_firmware, to, "demo");
    CHECK(kmod::firmware_instead(rig.host.paths, both) == std::vector<std::string>{to + "/updates/other"});
}

}  // TEST_SUITE
