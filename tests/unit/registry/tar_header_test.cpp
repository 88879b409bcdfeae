// SPDX-License-Identifier: Apache-2.0
// Headers of tar that readers take in different ways: row M47 of docs/hostile-contents.md.
#include <doctest/doctest.h>

#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

const std::string k_posix_format("ustar\00000", 8);
const std::string k_gnu_format("ustar  \0", 8);

/// A layer whose first header has `bytes` at `at`, and that format.
Outcome pull_with(const std::string& name, std::size_t at, const std::string& bytes,
                  const std::string& format = k_posix_format) {
    std::string tar = TarBuilder().file(name, "data").finish();
    tar.replace(257, 8, format);
    tar.replace(at, bytes.size(), bytes);
    reseal(tar);
    return pull_tar(tar);
}

std::string padded(std::string text, std::size_t length) {
    text.resize(length);
    return text;
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("M47 a prefix that some readers take") {
    const auto with_format = [](const std::string& format) { return pull_with("x.ko", 345, k_modules, format); };
    CHECK(with_format(k_posix_format).files.contains(k_modules + "/x.ko"));
    for (const std::string& format :
         {std::string("ustar\0\0\0", 8), std::string("ustar\00010", 8), std::string(8, '\0')}) {
        const Outcome odd = with_format(format);
        CHECK(odd.code() == "bad-layer");
        CHECK(odd.message().find("expected version 00 of the tar format where a name has a prefix") == 0);
    }
    const Outcome gnu = pull_with(k_modules.substr(4) + "/x.ko", 345, "opt", k_gnu_format);
    CHECK(gnu.code() == "bad-layer");
    CHECK(gnu.message().find("expected an octal number as time, found \"opt") == 0);
    // Behind a time that is one, readers agree: it is no prefix.
    CHECK(pull_with(k_modules + "/x.ko", 345, "00000000001\0", k_gnu_format).files.contains(k_modules + "/x.ko"));
    CHECK(pull_with(k_modules + "/x.ko", 345, padded("00000000001", 12) + "opt", k_gnu_format).code() == "bad-layer");
}

TEST_CASE("the prefix of star, which is shorter") {
    const auto with_prefix = [](const std::string& prefix) {
        std::string tar = TarBuilder().file("x.ko", "data").finish();
        tar.replace(345, prefix.size(), prefix);
        tar.replace(508, 4, std::string("tar\0", 4));
        reseal(tar);
        return pull_tar(tar);
    };
    CHECK(with_prefix(k_modules).files.contains(k_modules + "/x.ko"));
    const std::string longest = k_modules + "/" + std::string(131 - k_modules.size() - 1, 'd');
    CHECK(with_prefix(longest.substr(0, 130)).code() == "ok");
    CHECK(with_prefix(longest + "00000000001").code() == "bad-layer");
    CHECK(with_prefix(padded(k_modules, 131) + "x").code() == "bad-layer");
}

TEST_CASE("M47 numbers that Go's reader refuses") {
    const std::string name = k_modules + "/x.ko";
    struct {
        std::size_t at, length;
        const char* what;
    } const fields[] = {{100, 8, "mode"},    {108, 8, "user"},   {116, 8, "group"},
                        {136, 12, "time"}, {329, 8, "device"}, {337, 8, "device"}};
    for (const auto& field : fields) {
        CAPTURE(field.at);
        for (const std::string& bad : {std::string("zz"), std::string("0000648"), std::string("-1"),
                                       std::string("6 4"), std::string("\x80\x01") + std::string(10, '\xff')}) {
            if (bad.front() == '\x80' && field.length == 8) continue;
            const Outcome refused = pull_with(name, field.at, padded(bad, field.length));
            CHECK(refused.code() == "bad-layer");
            CHECK(refused.message().find(std::string("expected an octal number as ") + field.what) == 0);
        }
        for (const std::string& good : {std::string(), std::string("  755 "), std::string("\0\0 644", 6),
                                        std::string(field.length, '\xff'), std::string("\x80\0\0\0\0\0\1", 7)}) {
            CHECK(pull_with(name, field.at, padded(good, field.length)).code() == "ok");
        }
    }

    std::string checksum = TarBuilder().file(name, "data").finish();
    const auto sum = std::stoul(checksum.substr(148, 6), nullptr, 8);
    checksum.replace(148, 8, std::string("\x80\0\0\0\0\0", 6) + static_cast<char>(sum >> 8U) + static_cast<char>(sum));
    CHECK(pull_tar(checksum).code() == "bad-layer");

    const auto with_record = [&](const std::string& key, const std::string& value) {
        return pull_tar(TarBuilder().pax(key, value).file(name, "data").finish()).code();
    };
    for (const std::string key : {"uid", "gid", "mtime", "atime", "ctime"}) {
        CAPTURE(key);
        for (const char* bad : {"abc", "1x", "0x1", "99999999999999999999", "+-1", ".5", "1.5.5"})
            CHECK(with_record(key, bad) == "bad-layer");
        for (const char* good : {"", "1", "-1", "+1"}) CHECK(with_record(key, good) == "ok");
    }
    CHECK(with_record("uid", "1.5") == "bad-layer");
    CHECK(with_record("mtime", "1.5") == "ok");
    CHECK(with_record("mtime", "-1.") == "ok");
    CHECK(with_record("uname", std::string("a\0b", 3)) == "bad-layer");
    CHECK(with_record("gname", "staff") == "ok");
}

TEST_CASE("M47 holes that one reader finds") {
    const std::string name = k_modules + "/x.ko";
    const auto pull = [&](const std::string& key, const std::string& value) {
        return pull_tar(TarBuilder().pax(key, value).file(name, std::string(1024, 'A')).finish());
    };
    for (const char* map : {" 512 1024 1536", " 0 512 4096"}) CHECK(pull("SUN.holesdata", map).code() == "bad-layer");
    CHECK(pull("SCHILY.realsize", "10").message() ==
          "expected a pax header of records LENGTH KEY=VALUE in the layer, found a size or holes of a file that some "
          "readers ignore");
    CHECK(pull("SCHILY.ino", "10").files.at(name) == std::string(1024, 'A'));
    TarHeader global;
    global.name = "pax_global_header";
    global.type = 'g';
    const std::string record = "32 SUN.holesdata= 512 1024 1536\n";
    global.size = record.size();
    const Outcome for_all = pull_tar(TarBuilder().raw(global, record).file(name, std::string(1024, 'A')).finish());
    CHECK(for_all.code() == "bad-layer");
    const std::vector<std::pair<std::string, std::string>> odd_size{
        {"GNU.sparse.size", "1024x"}, {"GNU.sparse.numblocks", "1"}, {"GNU.sparse.map", "512,8"}};
    CHECK(pull_tar(TarBuilder().pax(odd_size).file(name, "segments").finish()).code() == "bad-layer");
}

}
