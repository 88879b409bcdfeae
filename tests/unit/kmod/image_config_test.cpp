// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kmod/host/image_config.hpp"
#include "kmod/ko/module_service.hpp"
#include "sys/temp_dir.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;
namespace fs = std::filesystem;

namespace {

struct ImageTree {
    sys::TempDir top{"kmm-test-"};
    std::string directory = top.path() + "/image/etc/modprobe.d";
    std::vector<std::string> warnings;

    std::vector<kmod::ImageConfigFile> read(sandbox::Confined* parser = nullptr, bool order = false) {
        warnings.clear();
        return kmod::read_image_config({directory, top.path() + "/image", "/etc/modprobe.d", order}, parser, warnings);
    }
    std::string fault(bool order = false) {
        try {
            (void)read(nullptr, order);
            return "none";
        } catch (const Error& error) {
            return fmt::format("{} {}: {}", static_cast<int>(error.exit()), error.code(), error.message());
        }
    }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("a confined process reads the same lines of modprobe.d files") {
    ImageTree tree;
    put(tree.directory + "/a.conf", "options demo a=1\r\n\n # no\n#no\noptions demo \\\n b=\"x y\" \\");
    put(tree.directory + "/b.conf", "");
    put(tree.directory + "/README", "options demo no=1\n");
    sandbox::Confined parser({kmod::module_service()});
    const auto here = tree.read();
    const auto there = tree.read(&parser);
    REQUIRE(here.size() == 2);
    REQUIRE(there.size() == 2);
    CHECK(here[0].name == "a.conf");
    CHECK(here[0].shown == "image:/etc/modprobe.d/a.conf");
    CHECK(here[0].lines == there[0].lines);
    REQUIRE(here[0].lines.size() == 2);
    CHECK(here[0].lines[1].number == 5);
    CHECK(here[0].lines[1].words.at(2) == "b=\"x y\"");
    CHECK(here[1].lines.empty());
    REQUIRE(tree.warnings.size() == 1);
    CHECK(tree.warnings[0] ==
          "modprobed-dir: /etc/modprobe.d/README of the image is not read: modprobe reads names that end in .conf");
}

TEST_CASE("a process that lies about lines of a file is taken for a crashed one") {
    sandbox::Service lying = kmod::module_service();
    lying.serve = [](const std::string&, sandbox::Channel& channel, sandbox::Channel&) {
        sandbox::MessageWriter out;
        out.number(1);  // a line
        out.number(1);
        out.number(0);  // without a word
        static_cast<void>(channel.send(out.bytes()));
    };
    sandbox::Confined parser({lying});
    CHECK_THROWS_WITH_AS(static_cast<void>(kmod::read_config_lines(&parser, "options a b\n", "/x.conf")),
                         doctest::Contains("gave an answer that is not one"), Error);
}

TEST_CASE("what KMM refuses as modprobedDir is refused") {
    ImageTree tree;
    CHECK(tree.fault() ==
          "66 modprobed-dir-not-in-image: modprobe.modprobedDir: the image has no directory /etc/modprobe.d");
    put(tree.directory, "a file");
    CHECK(tree.fault() ==
          "65 bad-modprobed-dir: modprobe.modprobedDir: /etc/modprobe.d of the image is not a directory");
    fs::remove(tree.directory);
    fs::create_directories(tree.directory);
    const std::string empty =
        "65 bad-modprobed-dir: modprobe.modprobedDir: /etc/modprobe.d of the image has no regular file in it";
    CHECK(tree.fault() == empty);
    fs::create_symlink("nowhere", tree.directory + "/a.conf");
    CHECK(tree.fault() == empty);
    fs::remove(tree.directory + "/a.conf");
    REQUIRE(::mkfifo((tree.directory + "/a.conf").c_str(), 0600) == 0);
    CHECK(tree.fault() == empty);
    put(tree.directory + "/softdep.conf", "softdep a pre: b\n");
    CHECK(tree.fault() == "none");
    CHECK(tree.fault(true) ==
          "65 bad-modprobed-dir: modprobe.modprobedDir: /etc/modprobe.d of the image has a file softdep.conf, and so "
          "has modprobe.modulesLoadingOrder");
    fs::create_directory(tree.directory + "/more");
    CHECK(tree.fault() ==
          "65 bad-modprobed-dir: modprobe.modprobedDir: /etc/modprobe.d of the image has a sub-directory, more");
    fs::remove(tree.directory + "/more");
    fs::create_directory_symlink("..", tree.directory + "/more");
    CHECK(tree.fault().find("has a sub-directory, more") != std::string::npos);
}

TEST_CASE("hostile files of modprobedDir: links out of the image, too much, no text") {
    ImageTree tree;
    put(tree.top.path() + "/secret", "options demo secret=1\n");
    put(tree.directory + "/a.conf", "options demo a=1\n");
    put(tree.top.path() + "/image/etc/other", "options demo other=1\n");
    fs::create_symlink("../other", tree.directory + "/b.conf");  // KMM copies what it leads to
    CHECK(tree.read().at(1).lines.at(0).words.at(2) == "other=1");
    fs::create_symlink("../../../secret", tree.directory + "/c.conf");
    CHECK(tree.fault().starts_with("16 image-unsafe"));
    fs::remove(tree.directory + "/c.conf");
    put(tree.directory + "/c.conf", std::string("options demo a\0b=1\n", 19));
    CHECK(tree.fault().find("found a NUL byte") != std::string::npos);
    put(tree.directory + "/c.conf", std::string(kmod::k_config_file_max, ' '));
    CHECK(tree.fault() == "none");
    put(tree.directory + "/d.conf", std::string(kmod::k_config_file_max + 1, ' '));
    CHECK(tree.fault().starts_with("16 image-limit"));
    put(tree.directory + "/d.conf", std::string(kmod::k_config_file_max, ' '));
    CHECK(tree.fault().starts_with("16 image-limit"));
    fs::remove(tree.directory + "/d.conf");
    for (int i = 0; i < 257; ++i) put(fmt::format("{}/x{}.conf", tree.directory, i), "");
    CHECK(tree.fault().starts_with("16 image-limit"));
}
}
