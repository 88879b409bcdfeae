// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/devel.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
using namespace kmm::kernel;

namespace {

namespace fs = std::filesystem;

constexpr const char* k_symvers_text = "0x00000011\t_printk\tvmlinux\tEXPORT_SYMBOL\t\n";
constexpr const char* k_config_text = "CONFIG_X86_64=y\nCONFIG_SMP=y\n";
constexpr const char* k_uts_text = "#define UTS_RELEASE \"6.1.0-77-demo\"\n";

void put_text(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

void make_headers(const fs::path& top) {
    put_text(top / "Module.symvers", k_symvers_text);
    put_text(top / ".config", k_config_text);
    put_text(top / "include/generated/utsrelease.h", k_uts_text);
}

/// A cpio archive of the form newc.
std::string cpio(const std::vector<std::pair<std::string, std::string>>& files) {
    std::string text;
    const auto member = [&](const std::string& name, const std::string& content) {
        const auto pad = [&] { text.resize((text.size() + 3) / 4 * 4, '\0'); };
        text +=
            fmt::format("070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", 1,
                        name == "TRAILER!!!" ? 0 : 0100644, 0, 0, 1, 0, content.size(), 0, 0, 0, 0, name.size() + 1, 0);
        text += name + '\0';
        pad();
        text += content;
        pad();
    };
    for (const auto& [name, content] : files) member(name, content);
    member("TRAILER!!!", "");
    return text;
}

/// Lead, an empty signature and an empty header: what stands before the payload of an RPM package.
std::string rpm_of(const std::string& payload) {
    std::string lead(96, '\0');
    lead.replace(0, 6, std::string("\xed\xab\xee\xdb\x03\x00", 6));
    const std::string header = std::string("\x8e\xad\xe8\x01", 4) + std::string(12, '\0');
    return lead + header + header + payload;
}

std::string code_of(const std::string& path) {
    try {
        static_cast<void>(read_devel(path));
    } catch (const Error& error) {
        return error.code();
    }
    return "";
}

void check_sound(const std::string& path) {
    CAPTURE(path);
    const auto found = read_devel(path);
    CHECK(found.release == "6.1.0-77-demo");
    CHECK(found.vermagic == "6.1.0-77-demo SMP");
    CHECK(found.exports.size() == 1);
    CHECK(found.source == path);
}

}  // namespace

TEST_SUITE("kernel::unit") {

TEST_CASE("headers as a directory, below build, and as packages") {
    const sys::TempDir top("kmm-test-");
    const fs::path root(top.path());
    make_headers(root / "headers");
    check_sound((root / "headers").native());
    make_headers(root / "lib/modules/6.1.0-77-demo/build");
    check_sound((root / "lib/modules/6.1.0-77-demo").native());

    make_headers(root / "deb/usr/src/linux-headers-6.1.0-77-demo");
    put_text(root / "deb/DEBIAN/control",
             "Package: linux-headers-demo\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n");
    const std::string deb = (root / "x.deb").native();
    REQUIRE(std::system(fmt::format("dpkg-deb --root-owner-group -b '{}' '{}' >/dev/null", (root / "deb").native(), deb)
                            .c_str()) == 0);
    check_sound(deb);

    put_text(root / "x.rpm", rpm_of(cpio({{"./usr/src/kernels/6.1.0-77-demo/Module.symvers", k_symvers_text},
                                          {"./usr/src/kernels/6.1.0-77-demo/.config", k_config_text}})));
    check_sound((root / "x.rpm").native());
}

TEST_CASE("Module.symvers alone, plain and compressed") {
    const sys::TempDir top("kmm-test-");
    const std::string file = top.path() + "/Module.symvers";
    put_text(file, k_symvers_text);
    const auto found = read_devel(file);
    CHECK(found.release.empty());
    CHECK(found.vermagic.empty());
    CHECK(found.exports.size() == 1);
    REQUIRE(std::system(("gzip -k '" + file + "'").c_str()) == 0);
    CHECK(read_devel(file + ".gz").exports.size() == 1);
}

TEST_CASE("what is none of them") {
    const sys::TempDir top("kmm-test-");
    const std::string root = top.path();
    put_text(root + "/bad.deb", "nothing of the kind");
    put_text(root + "/bad.rpm", "nothing of the kind");
    put_text(root + "/empty.rpm", rpm_of(cpio({{"./README", "x"}})));
    put_text(root + "/bad.gz", "nothing of the kind");
    put_text(root + "/binary", std::string("\x7f" "ELF\0\0", 6));
    fs::create_directory(root + "/empty");
    CHECK(code_of(root + "/absent") == "kernel-devel-not-found");
    CHECK(code_of(root + "/bad.deb") == "bad-package");
    CHECK(code_of(root + "/bad.rpm") == "bad-package");
    CHECK(code_of(root + "/empty.rpm") == "no-symvers");
    CHECK(code_of(root + "/empty") == "no-symvers");
    CHECK(code_of(root + "/bad.gz") == "bad-symvers");
    CHECK(code_of(root + "/binary") == "bad-symvers");
}

}
