// SPDX-License-Identifier: Apache-2.0
// The bytes of a layer: compression, size and archive format: rows M25 to M31 and M47 to M49 of
// docs/hostile-contents.md.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/sanitized.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

const std::string k_gzip = "application/vnd.oci.image.layer.v1.tar+gzip";
const std::string k_zstd = "application/vnd.oci.image.layer.v1.tar+zstd";

std::string good_tar() { return TarBuilder().file(k_modules + "/good.ko", "good").finish(); }

Outcome pull_bytes(const std::string& bytes, const std::string& type, const std::string& plain) {
    return pull_layers({TestLayer{bytes, sha256(plain), type}});
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("M25 another compression than the media type says") {
    const Outcome zstd_bytes = pull_bytes(zstd(good_tar()), k_gzip, good_tar());
    CHECK(zstd_bytes.code() == "bad-layer");
    CHECK(zstd_bytes.message() == "expected gzip as the media type says, found zstd");
    const Outcome gzip_bytes = pull_bytes(gzip(good_tar()), k_zstd, good_tar());
    CHECK(gzip_bytes.message() == "expected zstd as the media type says, found gzip");
    CHECK(pull_bytes(gzip(good_tar()), "application/vnd.oci.image.layer.v1.tar", good_tar()).message() ==
          "expected a plain tar as the media type says, found gzip");
    CHECK(pull_bytes(good_tar(), k_gzip, good_tar()).message() ==
          "expected gzip as the media type says, found a plain tar");
}

TEST_CASE("M26 gzip members, garbage, checksums and truncation") {
    const std::string tar = good_tar();
    const std::string whole = gzip(tar);
    CHECK(pull_bytes(gzip(tar.substr(0, 700)) + gzip(tar.substr(700)), k_gzip, tar).code() == "ok");
    CHECK(pull_bytes(gzip("") + whole, k_gzip, tar).code() == "ok");
    CHECK(pull_bytes(whole + "garbage", k_gzip, tar).message().find("trailing garbage") != std::string::npos);
    CHECK(pull_bytes(whole + std::string(64, '\0'), k_gzip, tar).code() == "bad-layer");
    std::string crc = whole;
    crc[crc.size() - 8] = static_cast<char>(crc[crc.size() - 8] ^ 1);
    CHECK(pull_bytes(crc, k_gzip, tar).message().find("checksum") != std::string::npos);
    for (std::size_t length = 1; length < whole.size(); ++length) {
        CAPTURE(length);
        const Outcome cut = pull_bytes(whole.substr(0, length), k_gzip, tar);
        CHECK(cut.code() == "bad-layer");
        CHECK(cut.exit() == Exit::data);
    }
    const std::string framed = zstd(tar.substr(0, 700)) + zstd(tar.substr(700));
    CHECK(pull_bytes(framed, k_zstd, tar).code() == "ok");
    CHECK(pull_bytes(framed.substr(0, framed.size() - 3), k_zstd, tar).code() == "bad-layer");
    CHECK(pull_bytes(framed + "garbage", k_zstd, tar).code() == "bad-layer");
    const std::string skipped("\x5a\x2a\x4d\x18\x03\0\0\0abc",
                              11);  // as pzstd puts before, and zstd:chunked behind, what counts
    CHECK(pull_bytes(skipped + framed + skipped, k_zstd, tar).code() == "ok");
    CHECK(pull_bytes(framed + skipped.substr(0, 9), k_zstd, tar).code() == "bad-layer");
    CHECK(pull_bytes(skipped + whole, k_zstd, tar).code() == "bad-layer");
    CHECK(pull_bytes(skipped + framed, k_gzip, tar).message() == "expected gzip as the media type says, found zstd");
}

TEST_CASE(
    "an archive that ends with its last file, as umoci insert writes it, is whole; one that ends elsewhere is not") {
    const std::string content(700, 'x');
    const std::string blocks =
        TarBuilder().file(k_modules + "/good.ko", "good").file(k_modules + "/more.ko", content).blocks();
    const std::size_t end = blocks.size() - (1024 - content.size());
    // Every length in the plain build. Beside sanitizers, where a pull takes ten times as long, some, and those that
    // matter.
    const std::size_t stride = test::sanitized() ? 16 : 1;
    for (std::size_t length = end - 700; length <= blocks.size(); ++length) {
        const bool matters = (length + 1 >= end && length <= end + 1) || length == blocks.size();
        if (length % stride != 0 && !matters) { continue; }
        CAPTURE(length);
        const std::string tar = blocks.substr(0, length);
        const Outcome outcome = pull_bytes(gzip(tar), k_gzip, tar);
        CHECK(outcome.code() == (length == end || length == blocks.size() ? "ok" : "bad-layer"));
    }
}

TEST_CASE("M27 compressed twice is not a tar") {
    CHECK(pull_bytes(gzip(gzip(good_tar())), k_gzip, gzip(good_tar())).code() == "bad-layer");
    CHECK(pull_bytes(zstd(gzip(good_tar())), k_zstd, gzip(good_tar())).exit() == Exit::data);
}

TEST_CASE("M28 a gibibyte of zeros in 33 kB; a window of 2 GiB") {
    const std::string bomb = zstd_zeros(1U << 30U);
    REQUIRE(bomb.size() < 100'000);
    const Outcome ratio = pull_bytes(bomb, k_zstd, "");
    CHECK(ratio.code() == "image-limit");
    CHECK(ratio.exit() == Exit::unsafe);
    CHECK(ratio.error->hint().find("--limit ratio=") != std::string::npos);
    const Outcome size = pull_layers({TestLayer{bomb, sha256(""), k_zstd}}, [](auto& request) {
        request.limits.ratio = 1'000'000;
        request.limits.inflated_layer_bytes = 64U << 20U;
    });
    CHECK(size.code() == "image-limit");
    CHECK(size.error->hint().find("--limit inflated_layer_bytes=") != std::string::npos);
    // Magic number, frame header without content size, window descriptor 2^31, an empty last block.
    const std::string window("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9);
    const Outcome wide = pull_bytes(window, k_zstd, "");
    CHECK(wide.code() == "image-limit");
    CHECK(wide.message().find("window") != std::string::npos);
}

TEST_CASE("M29 eight tebibytes of hole in one block") {
    const std::string tar = sparse_entry(k_modules + "/huge.ko", 8ULL << 40U) + std::string(1024, '\0');
    CHECK(gzip(tar).size() < 300);
    const Outcome outcome = pull_tar(tar);
    CHECK(outcome.code() == "image-limit");
    CHECK(outcome.exit() == Exit::unsafe);
    CHECK(outcome.error->hint().find("--limit file_bytes=") != std::string::npos);
    // A small hole is filled with zeros like any tool does.
    const Outcome small = pull_tar(sparse_entry(k_modules + "/hole.ko", 5000) + std::string(1024, '\0'));
    REQUIRE_MESSAGE(!small.error, small.message());
    CHECK(small.files.at(k_modules + "/hole.ko") == std::string(5000, '\0'));
}

TEST_CASE("holes in a file are zeros, before, between and after its bytes") {
    const std::string first(512, 'a');
    const std::string second(1000, 'b');
    std::string expected(300'000, '\0');
    expected.replace(70'000, first.size(), first);
    expected.replace(200'000, second.size(), second);
    const Outcome outcome =
        pull_tar(sparse_entry(k_modules + "/s.ko", expected.size(), {{70'000, first}, {200'000, second}}) +
                 TarBuilder().file(k_modules + "/t.ko", "whole").finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/s.ko") == expected);
    CHECK(outcome.files.at(k_modules + "/t.ko") == "whole");
    // Pieces that go backwards are refused, whatever the second would overwrite.
    CHECK(pull_tar(sparse_entry(k_modules + "/s.ko", expected.size(), {{200'000, first}, {70'000, second}}) +
                   std::string(1024, '\0'))
              .code() == "bad-layer");
}

TEST_CASE("M30 too many entries") {
    TarBuilder tar;
    for (int i = 0; i < 101; ++i) {
        tar.file(k_modules + "/" + std::to_string(i), "");
    }
    const Outcome outcome = pull_tar(tar.finish(), [](auto& request) { request.limits.entries = 100; });
    CHECK(outcome.code() == "image-limit");
    CHECK(outcome.error->hint().find("--limit entries=") != std::string::npos);
    CHECK(pull_tar(tar.finish(), [](auto& request) { request.limits.entries = 101; }).code() == "ok");
}

TEST_CASE("M31 the inflated layer is not what the configuration says") {
    const Outcome outcome = pull_bytes(gzip(good_tar()), k_gzip, "something else");
    CHECK(outcome.code() == "digest-mismatch");
    CHECK(outcome.exit() == Exit::integrity);
    CHECK(outcome.detail("expected") == sha256("something else"));
    CHECK(outcome.detail("found") == sha256(good_tar()));
}

TEST_CASE("M47 sizes and names that lie about their length") {
    TarHeader header;
    header.name = "x";
    header.type = 'L';
    header.size = 1U << 30U;
    CHECK(pull_tar(TarBuilder().raw(header).finish()).exit() == Exit::data);
    header.type = 'x';
    CHECK(pull_tar(TarBuilder().raw(header).finish()).exit() == Exit::data);
    header = TarHeader{};
    header.name = k_modules + "/x.ko";
    header.raw_size = std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    const Outcome negative = pull_tar(TarBuilder().raw(header).finish());
    CHECK(negative.error.has_value());
    const Outcome longer = pull_tar(TarBuilder().pax("size", "99999999999").file(k_modules + "/x.ko", "data").finish());
    CHECK(longer.error.has_value());
    CHECK((longer.exit() == Exit::data || longer.exit() == Exit::unsafe));
    CHECK(pull_tar(TarBuilder().pax("size", "100000").file(k_modules + "/x.ko", "data").finish()).exit() == Exit::data);
}

TEST_CASE("M47 pax headers that are none, and names with a NUL") {
    TarHeader header;
    header.name = "x";
    header.type = 'x';
    for (const std::string& records :
         {std::string("999 path=x\n"), std::string("9 pathxx\n"), std::string("0 path=x\n"), std::string("11 path=abc"),
          std::string("path=x\n")}) {
        CAPTURE(records);
        header.size = records.size();
        const Outcome outcome = pull_tar(TarBuilder().raw(header, records).file(k_modules + "/x.ko", "data").finish());
        CHECK(outcome.code() == "bad-layer");
        CHECK(outcome.message().find("pax header") != std::string::npos);
    }
    for (const char* key : {"path", "linkpath"}) {
        const Outcome cut = pull_tar(
            TarBuilder().pax(key, k_modules + std::string("/a.ko\0b", 7)).file(k_modules + "/x.ko", "data").finish());
        CHECK(cut.code() == "bad-layer");
        CHECK(cut.message().find("a NUL in a name") != std::string::npos);
    }
    CHECK(pull_tar(TarBuilder().pax("comment", std::string("a\0b", 3)).file(k_modules + "/x.ko", "data").finish())
              .code() == "ok");
}

TEST_CASE("M47 a name or a size for all entries, which some readers take and others do not") {
    const auto global = [](const std::string& record) {
        TarHeader header;
        header.name = "pax_global_header";
        header.type = 'g';
        const std::string records = fmt::format("{} {}\n", record.size() + 4, record);
        header.size = records.size();
        return pull_tar(TarBuilder().raw(header, records).file(k_modules + "/x.ko", "data").finish());
    };
    CHECK(global("comment=made by git").code() == "ok");
    for (const std::string key : {"path", "linkpath", "size", "GNU.sparse.map"}) {
        CHECK(global(key + "=1000").message() ==
              "expected " + key + " for each entry of the layer, found it for all that follow");
    }
    CHECK(global("comment").code() == "bad-layer");
}

TEST_CASE("M47 one block of zeros, where some readers end and others go on") {
    const std::string zeros(512, '\0');
    const std::string one = TarBuilder().file(k_modules + "/x.ko", "data").blocks();
    const std::string other = TarBuilder().file(k_modules + "/y.ko", "data").finish();
    CHECK(pull_tar(one + zeros).files.size() == 1);
    CHECK(pull_tar(one + zeros + zeros).files.size() == 1);
    CHECK(pull_tar(one + zeros + other).message() ==
          "expected two blocks of zeros at the end of the tar, found one and then more");
}

TEST_CASE("M47 maps of sparse files that readers take in different ways") {
    using Records = std::vector<std::pair<std::string, std::string>>;
    const auto told = [](Records records) {
        records.insert(records.begin(), {"GNU.sparse.size", "4"});
        return pull_tar(TarBuilder().pax(records).file(k_modules + "/x.ko", "data").finish()).message();
    };
    const std::string begin = "expected a pax header of records LENGTH KEY=VALUE in the layer, found ";
    CHECK(told({{"GNU.sparse.numblocks", "2"},
                {"GNU.sparse.map", "0,4"},
                {"GNU.sparse.offset", "0"},
                {"GNU.sparse.numbytes", "4"}}) == begin + "two maps of a sparse file");
    CHECK(told({{"GNU.sparse.map", "0,4"}}) ==
          begin + "a sparse file with another number of segments than it announces");
    CHECK(told({{"GNU.sparse.numblocks", "1"}, {"GNU.sparse.numbytes", "4"}, {"GNU.sparse.offset", "0"}}) ==
          begin + "offsets and sizes of a sparse file's segments out of order");
}

TEST_CASE("M47 sparse files that readers take in different ways, or that lack some of their bytes") {
    const std::string name = k_modules + "/x.ko";
    const auto told = [&](const std::vector<std::pair<std::string, std::string>>& records, std::string_view data) {
        return pull_tar(TarBuilder().pax(records).file(name, data).finish()).message();
    };
    const std::string begin = "expected a pax header of records LENGTH KEY=VALUE in the layer, found ";
    const std::string map = "1\n512\n8\n" + std::string(504, '\0');
    CHECK(told({{"GNU.sparse.name", name}}, "data") == begin + "a sparse file in no format that GNU tar writes");
    CHECK(told({{"GNU.sparse.major", "1"}, {"GNU.sparse.realsize", "1024"}}, map + "segments") ==
          begin + "a sparse file in no format that GNU tar writes");
    CHECK(told({{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}}, map + "segments") ==
          begin + "a sparse file in no format that GNU tar writes");
    const std::vector<std::pair<std::string, std::string>> in_content{
        {"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}, {"GNU.sparse.realsize", "1024"}};
    CHECK(told(in_content, map + "segments").empty());
    CHECK(told(in_content, map + "segm") == "expected 520 bytes of a sparse file as its map lists them, found 516");
    const std::vector<std::pair<std::string, std::string>> in_record{
        {"GNU.sparse.size", "1024"}, {"GNU.sparse.numblocks", "1"}, {"GNU.sparse.map", "512,8"}};
    CHECK(told(in_record, "segments").empty());
    CHECK(told(in_record, "segm") == "expected the 8 bytes of a sparse file that its map lists, found 4");
    auto twice = in_record;
    twice.emplace_back("GNU.sparse.map", "0,8");
    CHECK(told(twice, "segments") == begin + "two maps of a sparse file");
    twice.back() = {"GNU.sparse.size", "2048"};
    CHECK(told(twice, "segments") == begin + "one thing said twice of a sparse file");
    twice = in_record;
    twice.back().second = "512, 8";
    CHECK(told(twice, "segments") == begin + "no number in the map of a sparse file");

    std::string former = sparse_entry(name, 1024, {{512, "segments"}});
    CHECK(pull_tar(former + std::string(1024, '\0')).code() == "ok");
    former.replace(124, 11, "00000000004");
    reseal(former);
    CHECK(pull_tar(former + std::string(1024, '\0')).message() ==
          "expected the 8 bytes of a sparse file that its map lists, found 4");
    former = sparse_entry(name, 1024, {{512, "segments"}});
    former.replace(257, 8, std::string("ustar\00000", 8));
    reseal(former);
    CHECK(pull_tar(former + std::string(1024, '\0')).message() ==
          "expected a sparse file in GNU's format of tar, found \"" + name + "\" in another one");
}

TEST_CASE("M47 what lets only some readers go on does not hide what follows") {
    const std::string good = k_modules + "/x.ko";
    TarHeader long_name;
    long_name.name = "x";
    long_name.type = 'L';
    long_name.size = good.size();
    const std::string two_names = TarBuilder()
                                      .pax("path", k_modules + "/y.ko")
                                      .raw(long_name, good)
                                      .file("z.ko", "data")
                                      .finish();
    for (const char* size : {"4x", "4.0", " 4", "-4", "+4", ""}) {
        CAPTURE(size);
        const Outcome outcome = pull_tar(TarBuilder().pax("size", size).file(good, "data").blocks() + two_names);
        CHECK(outcome.message().find("a size that is not a number") != std::string::npos);
    }
    TarHeader odd;
    odd.name = good;
    odd.size = 4;
    const std::string before = TarBuilder().file(k_modules + "/a.ko", "data").blocks();
    for (const std::string& size : {std::string("00000004 zz\0", 12), std::string("+0000000004\0", 12),
                                    std::string("\0" "0000000004\0", 12), std::string("   \0" "0000004\0", 12),
                                    std::string("00000000009\0", 12), std::string("\t0000000004\0", 12)}) {
        CAPTURE(size);
        odd.raw_size = size;
        const Outcome outcome = pull_tar(before + TarBuilder().raw(odd, "data").blocks() + two_names);
        CHECK(outcome.code() == "bad-layer");
        CHECK(outcome.message().find("expected an octal number as size") == 0);
    }
    for (const char* key : {"path", "size"}) {
        const Outcome outcome =
            pull_tar(TarBuilder().pax(std::string(key) + '\0' + "x", "4").file(good, "data").finish());
        CHECK(outcome.message().find("a NUL in a key") != std::string::npos);
    }
    // The sum of bytes with a sign, as old programs wrote it.
    std::string with_signs = TarBuilder().file(k_modules + "/a.ko", "data").blocks();
    with_signs.replace(265, 2, "\xe9\xe9");
    reseal(with_signs);
    const auto sum = std::stoul(with_signs.substr(148, 6), nullptr, 8) - 512;
    with_signs.replace(148, 6, fmt::format("{:06o}", sum));
    CHECK(pull_tar(with_signs + std::string(1024, '\0')).code() == "ok");
    CHECK(pull_tar(with_signs + two_names).message().find("expected one name for each entry of the layer") == 0);
}

TEST_CASE("M47 entries with two names, of which readers take one or the other") {
    const std::string good = k_modules + "/x.ko";
    const std::string other = k_modules + "/y.ko";
    const auto long_name = [](TarBuilder tar, const std::string& name, char type = 'L') {
        TarHeader header;
        header.name = "././@LongLink";
        header.type = type;
        header.size = name.size() + 1;
        return tar.raw(header, name + std::string(1, '\0'));
    };
    const std::string expected =
        "expected one name for each entry of the layer, found \"" + good + "\" and \"" + other + "\" for the same";
    CHECK(pull_tar(long_name(TarBuilder().pax("path", good), other).file("x", "data").finish()).message() == expected);
    CHECK(pull_tar(long_name(TarBuilder(), good).pax("path", other).file("x", "data").finish()).message() == expected);
    CHECK(pull_tar(long_name(long_name(TarBuilder(), good), other).file("x", "data").finish()).message() == expected);
    CHECK(pull_tar(long_name(TarBuilder().pax("linkpath", good), other, 'K').symlink("x", "y").finish()).message() ==
          expected);
    const Outcome twice = pull_tar(TarBuilder().pax("path", good).pax("mtime", "1").file(other, "data").finish());
    CHECK(twice.message() == "expected a pax header of records LENGTH KEY=VALUE in the layer, found two for one entry");

    CHECK(pull_tar(long_name(TarBuilder().pax("mtime", "1"), good).file("x", "data").finish()).code() == "ok");
    CHECK(pull_tar(long_name(long_name(TarBuilder(), "x.ko", 'K'), k_modules + "/l.ko")
                       .symlink("x", "y")
                       .file(good, "data")
                       .finish())
              .files.size() == 2);
    CHECK(pull_tar(TarBuilder().pax("path", good).file("x", "data").pax("path", other).file("x", "data").finish())
              .files.size() == 2);
}

TEST_CASE("M47 links with content, which some readers skip and others take for entries") {
    TarHeader link;
    link.name = k_modules + "/l.ko";
    link.type = '1';
    link.link = k_modules + "/x.ko";
    link.size = 1024;
    const TarBuilder inner = TarBuilder().file(k_modules + "/inner.ko", "x");
    const Outcome pax =
        pull_tar(TarBuilder().pax("mtime", "1").file(k_modules + "/x.ko", "data").raw(link, inner.blocks()).finish());
    CHECK(pax.message() == "expected a hard link without content, found \"1\" with some for \"" + link.name + "\"");
    CHECK(pull_tar(TarBuilder().file(k_modules + "/x.ko", "data").raw(link, inner.blocks()).finish())
              .files.contains(k_modules + "/inner.ko"));  // none for all
    link.type = '2';
    link.link = "x.ko";
    CHECK(pull_tar(TarBuilder().pax("mtime", "1").file(k_modules + "/x.ko", "data").raw(link).finish()).files.size() ==
          2);
    for (const char type : {'A', 'M', 'N', 'V', 'X'}) {
        link.type = type;
        const Outcome odd = pull_tar(TarBuilder().raw(link, inner.blocks()).finish());
        CHECK(odd.message() ==
              fmt::format("expected files, directories and links, found \"{}\" with content for \"{}\"", type,
                          link.name));
    }
}

TEST_CASE("M48 the end of the archive; a type that nobody knows") {
    const TarBuilder tar = TarBuilder().file(k_modules + "/good.ko", "good");
    const Outcome endless = pull_tar(tar.blocks());
    CHECK(endless.code() == "ok");
    CHECK(endless.warned("tar-without-end"));
    CHECK_FALSE(pull_tar(tar.finish()).warned("tar-without-end"));
    CHECK_FALSE(pull_tar(tar.finish() + std::string(5000, 'x')).warned("tar-without-end"));
    CHECK(pull_tar(tar.finish() + std::string(5000, 'x')).code() == "ok");
    CHECK(pull_tar(tar.blocks().substr(0, 600)).code() == "bad-layer");
    CHECK(pull_tar(tar.blocks().substr(0, 300)).code() == "bad-layer");
    TarHeader unknown;
    unknown.name = k_modules + "/odd.ko";
    unknown.size = 3;
    for (const char type : {'Q', 'Z', '9', '?', 'y'}) {
        unknown.type = type;
        CHECK(pull_tar(TarBuilder().raw(unknown, "odd").finish()).code() == "bad-layer");
        CHECK(pull_tar(TarBuilder()
                           .file(k_modules + "/a.ko", std::string(1000, 'a'))
                           .pax("size", "3")
                           .raw(unknown, "odd")
                           .finish())
                  .code() == "bad-layer");
        TarHeader binary;
        binary.name = k_modules + "/a.ko";
        binary.size = 600;
        binary.raw_size = std::string("\x80\0\0\0\0\0\0\0\0\0\2\x58", 12);
        CHECK(pull_tar(TarBuilder().raw(binary, std::string(600, 'a')).raw(unknown, "odd").finish()).code() ==
              "bad-layer");
        CHECK(pull_tar(TarBuilder().raw(binary, std::string(600, 'a')).finish()).code() == "ok");
        const std::string odd = TarBuilder().raw(unknown, "odd").finish();
        const std::string holes = sparse_entry(k_modules + "/a.ko", 2048, {{512, "text"}});
        CHECK(pull_tar(holes + odd).code() == "bad-layer");
        CHECK(pull_tar(holes + TarBuilder().finish()).code() == "ok");
        std::string many_holes = sparse_entry(k_modules + "/a.ko", 1U << 20U, {{512, "text"}});
        many_holes[482] = 1;
        reseal(many_holes);
        many_holes.insert(512, std::string(504, '\0') + std::string("\1") + std::string(7 + 512, '\0'));
        CHECK(pull_tar(many_holes + odd).message().find("expected a type of entry that tar knows") == 0);
        const std::string map = "1\n512\n4\n";
        const TarBuilder pax_holes = TarBuilder()
                                         .pax({{"GNU.sparse.major", "1"},
                                               {"GNU.sparse.minor", "0"},
                                               {"GNU.sparse.realsize", "1024"},
                                               {"GNU.sparse.name", k_modules + "/a.ko"}})
                                         .file("x", map + std::string(512 - map.size(), '\0') + "text");
        CHECK(pull_tar(pax_holes.blocks() + odd).code() == "bad-layer");
        const Outcome filled = pull_tar(pax_holes.finish());
        REQUIRE_MESSAGE(filled.code() == "ok", filled.message());
        CHECK(filled.files.at(k_modules + "/a.ko").substr(512, 4) == "text");
    }
    // What looks like a header inside a file is none.
    CHECK(pull_tar(TarBuilder().file(k_modules + "/a.ko", TarBuilder().raw(unknown, "odd").finish()).finish()).code() ==
          "ok");
    CHECK(pull_tar(TarBuilder()
                       .pax("size", "2048")
                       .file(k_modules + "/a.ko", TarBuilder().raw(unknown, "odd").finish())
                       .finish())
              .code() == "ok");
}

TEST_CASE("M49 archives that are not tar") {
    for (const std::string& bytes : {std::string("PK\x03\x04") + std::string(2000, 'x'),
                                     std::string("Rar!\x1a\x07") + std::string(2000, 'x'),
                                     std::string("7z\xbc\xaf\x27\x1c") + std::string(2000, 'x'),
                                     std::string("070701") + std::string(2000, '0'),
                                     std::string("#mtree\n./x type=file\n"), std::string(3000, 'x'),
                                     std::string(32768, '\0') + "\x01""CD001" + std::string(2000, '\0'),
                                     std::string(600'000, '\0') + "x"}) {
        const Outcome outcome = pull_tar(bytes);
        CHECK(outcome.code() == "bad-layer");
        CHECK(outcome.exit() == Exit::data);
    }
}

}
