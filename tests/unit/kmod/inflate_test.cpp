// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/inflate.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/host/module_index.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

std::string unhex(const std::string& text) {
    const auto bytes = base::from_hex(text);
    return std::string(bytes->begin(), bytes->end());
}

/// "hello", as gzip -n, xz and zstd write it.
const std::string k_gzip = unhex("1f8b0800000000000003cb48cdc9c9070086a6103605000000");
const std::string k_xz = unhex(
    "fd377a585a000004e6d6b4460200210116000000742fe5a301000468656c6c6f00000000b137b9dbe5da1e9b00011d05"
    "b82d80af1fb6f37d010000000004595a");
const std::string k_zstd = unhex("28b52ffd045829000068656c6c6fa36d9f88");

std::string code_for(const std::string& bytes) {
    try {
        (void)kmod::plain_module(bytes, "/opt/demo.ko.x");
    } catch (const Error& error) {
        CHECK(error.message().find("/opt/demo.ko.x: ") == 0);
        return error.code();
    }
    return "";
}

TEST_CASE("the three kinds of compressed modules") {
    CHECK(kmod::plain_module(k_gzip, "a") == "hello");
    CHECK(kmod::plain_module(k_xz, "a") == "hello");
    CHECK(kmod::plain_module(k_zstd, "a") == "hello");
    CHECK(kmod::plain_module("\x7f" "ELF", "a") == "\x7f" "ELF");
    CHECK(kmod::compression_name(k_xz) == "xz");
    CHECK(kmod::compression_name("plain").empty());
}

TEST_CASE("several members, streams and frames are one module, as for libkmod") {
    const std::string passed_over = unhex("502a4d1802000000") + "xx";
    CHECK(kmod::plain_module(k_gzip + k_gzip, "a") == "hellohello");
    CHECK(kmod::plain_module(k_gzip + k_gzip + std::string(3, '\0'), "a") == "hellohello");  // to the end of a block
    CHECK(code_for(k_gzip + std::string(3, '\0') + k_gzip) == "module-format");
    CHECK(kmod::plain_module(k_xz + k_xz, "a") == "hellohello");
    CHECK(kmod::plain_module(k_xz + std::string(8, '\0') + k_xz + std::string(4, '\0'), "a") == "hellohello");
    CHECK(kmod::plain_module(k_zstd + passed_over + k_zstd + k_zstd, "a") == "hellohellohello");
    CHECK(kmod::plain_module(passed_over + k_zstd, "a") == "hello");
    for (const auto& whole : {k_gzip, k_xz, k_zstd}) {
        CAPTURE(kmod::compression_name(whole));
        for (std::size_t length = 1; length < whole.size(); ++length)
            CHECK(code_for(whole + whole.substr(0, length)) == "module-format");
        CHECK(code_for(whole + whole + "garbage") == "module-format");
    }
    CHECK(code_for(k_xz + k_gzip) == "module-format");
    CHECK(code_for(k_xz + std::string(5, '\0')) == "module-format");
}

TEST_CASE("damaged, cut off and trailing bytes") {
    for (const auto& whole : {k_gzip, k_xz, k_zstd}) {
        CAPTURE(kmod::compression_name(whole));
        CHECK(code_for(whole + "x") == "module-format");
        for (std::size_t length = 6; length < whole.size(); ++length)
            CHECK(code_for(whole.substr(0, length)) == "module-format");
        std::string flipped = whole;
        flipped[whole.size() - 3] = static_cast<char>(flipped[whole.size() - 3] ^ 0x55);
        CHECK(code_for(flipped) == "module-format");
    }
}

TEST_CASE("a zstd window of 2 GiB is over the limit, not damage") {
    CHECK(code_for(unhex("28b52ffd00a8090000") + "x") == "image-limit");
    CHECK(kmod::plain_module(unhex("28b52ffd0058090000") + "x", "a") == "x");
}

TEST_CASE("what is no module is told by its name") {
    const auto told = [](const std::string& bytes) {
        try {
            (void)kmod::parse_module(bytes, "a.ko");
        } catch (const Error& error) {
            CHECK(error.code() == "module-format");
            const std::string& text = error.message();
            return text.substr(std::min(text.find("no ELF magic"), text.size()));
        }
        return std::string("ok");
    };
    CHECK(told(unhex("5d00008000ffffffffffffffff00") + "rest") ==
          "no ELF magic: it is lzma data; modules are packed as xz, zstd or gzip");
    CHECK(told("BZh91AY&SY") == "no ELF magic: it is bzip2 data; modules are packed as xz, zstd or gzip");
    CHECK(told(unhex("04224d18") + "x") == "no ELF magic: it is lz4 data; modules are packed as xz, zstd or gzip");
    CHECK(told(unhex("fd377a585a0000")) == "no ELF magic: it is packed twice, within is xz data");
    CHECK(told("version https://git-lfs.github.com/spec/v1\noid sha256:00\n") ==
          "no ELF magic: it is a pointer of Git LFS: the file itself was never fetched");
    CHECK(told("!<arch>\nx") == "no ELF magic: it is an archive of ar");
    CHECK(told(std::string(257, 'n') + "ustar") == "no ELF magic: it is a tar archive");
    CHECK(told(std::string(4096, '\0')) == "no ELF magic: it is all zero bytes");
    CHECK(told("\n<!DOCTYPE HTML><title>403") == "no ELF magic: it is a web page");
    CHECK(told("#!/bin/sh\n") == "no ELF magic: it is a script");
    CHECK(told("anything else") == "no ELF magic");
}

TEST_CASE("an image with compressed modules is indexed by the plain ones") {
    sys::TempDir directory("kmm-inflate-");
    put(directory.path() + "/demo.ko.gz", k_gzip);
    try {
        kmod::ModuleIndex::build(directory.path(), directory.path()).require_sound();
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == "module-format");
        CHECK(error.message() == "/demo.ko.gz: not a loadable kernel module: no ELF magic");
    }
}

}
