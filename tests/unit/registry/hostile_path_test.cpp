// SPDX-License-Identifier: Apache-2.0
// Names, links, special files and whiteouts inside a layer: rows M32 to M45, M50 and M51 of docs/hostile-contents.md.
// pull_from() checks after every failure that nothing is left on disk and nothing beside it was touched.
#include <doctest/doctest.h>

#include <utility>

#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

struct Row {
    std::string what;
    std::string tar;
    const char* code;
};

void expect_each(const std::vector<Row>& rows, Exit exit) {
    for (const Row& row : rows) {
        CAPTURE(row.what);
        const Outcome outcome = pull_tar(row.tar);
        CAPTURE(outcome.message());
        CHECK(outcome.code() == row.code);
        CHECK(outcome.exit() == exit);
    }
}

/// A tar that starts with one good module.
TarBuilder good() { return TarBuilder().file(k_modules + "/good.ko", "good"); }

TarHeader odd_entry() {
    TarHeader header;
    header.name = k_modules + "/odd.ko";
    header.size = 3;
    return header;
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("M32 names that climb out or are absolute") {
    std::vector<Row> rows;
    for (const char* name : {"../x", "a/../../x", "/abs", "//abs", "./../x", "a/..", "..", "opt/../etc/passwd"}) {
        rows.push_back({name, good().file(name, "x").finish(), "image-unsafe"});
    }
    rows.push_back(
        {"below the kernel", good().file(k_modules + "/../../../../../victim", "x").finish(), "image-unsafe"});
    rows.push_back({"the root, a link", good().symlink("/", "x").finish(), "image-unsafe"});
    expect_each(rows, Exit::unsafe);
    CHECK(pull_tar(good().dir("/").finish()).code() == "ok");  // as kaniko writes the root
    const Outcome outcome = pull_tar(TarBuilder().file("../a\n\x1b[31mb", "x").finish());
    CHECK(outcome.message().find("\\n") != std::string::npos);
    CHECK(outcome.message().find('\x1b') == std::string::npos);
}

TEST_CASE("M33 symbolic links that leave the tree or run in a circle") {
    std::vector<Row> rows{
        {"absolute", good().symlink(k_modules + "/l.ko", "/etc/shadow").finish(), "image-unsafe"},
        {"relative out", good().symlink(k_modules + "/l.ko", "../../../../../victim").finish(), "image-unsafe"},
        {"out of the root, inside the image", good().symlink(k_modules + "/l.ko", "../../../../etc/x").finish(),
         "image-unsafe"},
        {"self", good().symlink(k_modules + "/l.ko", "l.ko").finish(), "image-unsafe"},
        {"circle of two", good().symlink(k_modules + "/a", "b").symlink(k_modules + "/b", "a").finish(),
         "image-unsafe"},
    };
    // Lexically "d/../../../x" stays inside; walked through d -> deep/er it does too; through up -> .. it does not.
    rows.push_back({"chain of three",
                    good().dir(k_modules + "/s1/s2")
                        .symlink(k_modules + "/s1/s2/c", "../..")
                        .symlink(k_modules + "/s1/s2/b", "c/..")
                        .symlink(k_modules + "/s1/s2/a", "b/../x").finish(), "image-unsafe"});
    expect_each(rows, Exit::unsafe);

    const Outcome inside = pull_tar(good().dir(k_modules + "/d").symlink(k_modules + "/d/l.ko", "../good.ko").finish());
    REQUIRE_MESSAGE(!inside.error, inside.message());
    REQUIRE(inside.files.contains(k_modules + "/d/l.ko"));
    CHECK(inside.files.at(k_modules + "/d/l.ko") == "-> ../good.ko");
    const Outcome dangling = pull_tar(good().symlink(k_modules + "/l.ko", "nowhere.ko").finish());
    CHECK_FALSE(dangling.error);
    CHECK(dangling.files.size() == 1);
    CHECK(dangling.warned("dangling-link: /" + k_modules + "/l.ko -> nowhere.ko"));
    CHECK_FALSE(dangling.warned("dangling-link: /" + k_modules + "/l.ko -> nowhere.ko, which"));
    const Outcome beside = pull_tar(
        good().file("opt/lib/modules/shared/x.ko", "x").symlink(k_modules + "/x.ko", "../shared/x.ko").finish());
    REQUIRE_MESSAGE(!beside.error, beside.message());
    CHECK(beside.files.size() == 2);
    CHECK(beside.files.at(k_modules + "/x.ko") == "x");  // the module that it means; other names elsewhere stay out
    const Outcome other = pull_tar(
        good().file("opt/lib/modules/shared/x.txt", "x").symlink(k_modules + "/x.txt", "../shared/x.txt").finish());
    CHECK(other.files.size() == 1);
    CHECK(other.warned("dangling-link: /" + k_modules +
                       "/x.txt -> ../shared/x.txt, which is in no directory that is taken"));
}

TEST_CASE("links that are a maze cost a bounded time") {
    std::string detour;
    while (detour.size() < 4000) {
        detour += "d/../";
    }
    TarBuilder tar = good().dir(k_modules + "/d");
    for (int i = 0; i < 300; ++i) {
        const std::string next = i + 1 == 300 ? "good.ko" : "l" + std::to_string(i + 1);
        tar.pax("linkpath", detour + next).symlink(k_modules + "/l" + std::to_string(i), "x");
    }
    CHECK(pull_tar(tar.finish()).code() == "image-unsafe");
}

TEST_CASE("the host link of in-tree dependencies is reported and never made") {
    for (const std::string& target :
         {"/lib/modules/" + k_kernel, "/host/lib/modules/" + k_kernel, "/lib/modules/" + k_kernel + "/",
          "//lib/modules/" + k_kernel, "/usr/lib/modules/" + k_kernel, "/host/usr/lib/modules/" + k_kernel,
          "/lib/modules/" + k_kernel + "/kernel"}) {
        const Outcome outcome = pull_tar(good().symlink(k_modules + "/host", target).finish());
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.size() == 1);
        CHECK(outcome.warned("host-link: /" + k_modules + "/host -> " + target));
    }
    const Outcome build = pull_tar(good().symlink(k_modules + "/build", "/usr/src/linux").finish());
    CHECK_FALSE(build.error);
    CHECK(build.files.size() == 1);
    CHECK(build.warned("build-link-ignored"));
    CHECK(pull_tar(good().symlink(k_modules + "/host", "/lib/modules/5.10").finish()).code() == "image-unsafe");
    for (const std::string& target :
         {"/lib/modules/" + k_kernel + "/../5.10", "/lib/modules/" + k_kernel + "/../../../etc",
          "/lib/modules/" + k_kernel + "x", std::string("/host/etc")}) {
        CHECK(pull_tar(good().symlink(k_modules + "/host", target).finish()).code() == "image-unsafe");
    }
    CHECK(pull_tar(good().symlink(k_modules + "/host", "/lib/modules/" + k_kernel)
                       .file(k_modules + "/host/x.ko", "x").finish()).code() == "image-unsafe");
}

TEST_CASE("M34 a file through a symbolic link") {
    expect_each({
        {"link, then a file through it",
         good().symlink(k_modules + "/d", ".").file(k_modules + "/d/x.ko", "x").finish(), "image-unsafe"},
        {"directory replaced by a link, then a child",
         good().dir(k_modules + "/d").symlink(k_modules + "/d", ".").file(k_modules + "/d/x.ko", "x").finish(),
         "image-unsafe"},
        {"link on the way to the wanted directory",
         TarBuilder().symlink("opt", "/etc").file(k_modules + "/x.ko", "x").finish(), "image-unsafe"},
        {"the kernel directory is a link",
         TarBuilder().dir("opt/lib/modules").symlink(k_modules, "other").file(k_modules + "/x.ko", "x").finish(),
         "image-unsafe"},
    }, Exit::unsafe);
    const Outcome layered = pull_layers({gzip_layer(good().dir(k_modules + "/d").finish()),
                                         gzip_layer(TarBuilder().symlink(k_modules + "/d", ".").finish()),
                                         gzip_layer(TarBuilder().file(k_modules + "/d/x.ko", "x").finish())});
    CHECK(layered.code() == "image-unsafe");

    // Links beside the wanted directory, with entries that whoever makes the whole image would put through them into
    // it.
    const std::string kernels = "opt/lib/modules";
    expect_each(
        {
            {"a link to the first directory on the way",
             good().symlink("o", "opt").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish(), "image-unsafe"},
            {"an absolute one, to the directory itself",
             good().symlink("srv/m", "/" + k_modules).file("srv/m/x.ko", "x").finish(), "image-unsafe"},
            {"in place of a module",
             good().symlink("o", "opt").file("o/lib/modules/" + k_kernel + "/good.ko", "bad").finish(), "image-unsafe"},
            {"up and over the root, which is the image's",
             good().symlink("o", "../../opt").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish(),
             "image-unsafe"},
            {"a chain",
             good().symlink("a", "b").symlink("b", "opt/./lib").file("a/modules/" + k_kernel + "/x.ko", "x").finish(),
             "image-unsafe"},
            {"two, one below the other",
             good()
                 .dir("s/t")
                 .symlink("s/t/u", "../../opt")
                 .symlink("v", "s/t")
                 .file("v/u/lib/modules/" + k_kernel + "/x.ko", "x")
                 .finish(),
             "image-unsafe"},
            {"in another kernel's directory",
             good().symlink(kernels + "/5.10/d", "../" + k_kernel).file(kernels + "/5.10/d/x.ko", "x").finish(),
             "image-unsafe"},
            {"a directory", good().symlink("o", k_modules).dir("o/d").finish(), "image-unsafe"},
            {"a link", good().symlink("o", k_modules).symlink("o/x.ko", "good.ko").finish(), "image-unsafe"},
            {"a file in place of a directory on the way", good().symlink("o", "opt").file("o/lib", "x").finish(),
             "image-unsafe"},
            {"before there is a link, a directory of that name",
             good().dir("o").symlink("o", "opt").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish(),
             "image-unsafe"},
        },
        Exit::unsafe);
    const Outcome told = pull_tar(good().symlink("o", "opt").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish());
    CHECK(told.message().find("expected no entry below a symbolic link, found \"o/lib/modules/" + k_kernel +
                              "/x.ko\", which leads to \"" + k_modules + "/x.ko\"") != std::string::npos);
    const auto after_link = [](const std::string& upper) {
        return pull_layers({gzip_layer(good().symlink("o", "opt").finish()), gzip_layer(upper)});
    };
    CHECK(after_link(TarBuilder().file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish()).code() == "image-unsafe");
    CHECK(after_link(TarBuilder().file("o/lib/modules/" + k_kernel + "/.wh.good.ko", "").finish()).code() ==
          "image-unsafe");
    CHECK(after_link(TarBuilder().file("o/lib/.wh.modules", "").finish()).code() == "image-unsafe");
    CHECK(after_link(TarBuilder().file("o/lib/modules/.wh..wh..opq", "").finish()).code() == "image-unsafe");
    const Outcome turned = pull_layers(
        {gzip_layer(TarBuilder().symlink("o", "usr").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish()),
         gzip_layer(
             TarBuilder().symlink("opt", "usr").file("usr/lib/modules/" + k_kernel + "/good.ko", "good").finish())});
    CHECK(turned.code() == "image-unsafe");  // the way leads there only afterwards
    const Outcome elsewhere =
        pull_layers({gzip_layer(TarBuilder().symlink("usr", "srv").finish()),
                     gzip_layer(TarBuilder().file("usr/lib/modules/" + k_kernel + "/x.ko", "x").finish()),
                     gzip_layer(TarBuilder().dir("usr").symlink("opt", "usr").finish())});
    CHECK(elsewhere.code() == "image-unsafe");  // it is in srv, where nothing is looked for in the end
}

TEST_CASE("entries below links that lead elsewhere are nobody's concern") {
    const auto expect_good = [](const Outcome& outcome) {
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.size() == 1);
        CHECK(outcome.files.at(k_modules + "/good.ko") == "good");
    };
    expect_good(pull_tar(
        good().symlink("lib", "usr/lib").file("lib/x", "x").file("lib/modules/" + k_kernel + "/x.ko", "x").finish()));
    expect_good(pull_tar(good().symlink("o", "opt").dir("o").dir("o/lib").file("o/etc/x", "x").finish()));
    expect_good(
        pull_tar(good().symlink("o", "opt").dir("o/lib/modules").file("o/lib/modules/5.10/x.ko", "x").finish()));
    expect_good(pull_tar(good().symlink("a", "b").symlink("b", "a").file("a/x", "x").finish()));
    const auto after_link = [&](const std::string& upper) {
        expect_good(pull_layers({gzip_layer(good().symlink("o", "opt").finish()), gzip_layer(upper)}));
    };
    after_link(TarBuilder().dir("o").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish());  // a directory took
                                                                                                  // the link's place
    after_link(TarBuilder().file(".wh.o", "").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish());
    after_link(TarBuilder().symlink("o", "etc").file("o/lib/modules/" + k_kernel + "/x.ko", "x").finish());
    after_link(TarBuilder().file("o/etc/.wh.x", "").file("o/.wh..wh.plnk", "").finish());
}

TEST_CASE("M35 the root itself as a symbolic link") {
    expect_each({
        {".", TarBuilder().symlink(".", "/etc").file(k_modules + "/x.ko", "x").finish(), "image-unsafe"},
        {"./.", TarBuilder().symlink("./.", "/etc").file(k_modules + "/x.ko", "x").finish(), "image-unsafe"},
        {"/.", TarBuilder().symlink("/.", "/etc").file(k_modules + "/x.ko", "x").finish(), "image-unsafe"},
    }, Exit::unsafe);
}

TEST_CASE("M36 hard links") {
    expect_each({
        {"outside", good().hardlink(k_modules + "/h.ko", "../../victim").finish(), "image-unsafe"},
        {"absolute", good().hardlink(k_modules + "/h.ko", "/etc/shadow").finish(), "image-unsafe"},
        {"absolute, and out", good().hardlink(k_modules + "/h.ko", "/../" + k_modules).finish(), "image-unsafe"},
        {"elsewhere in the image", good().file("etc/x", "x").hardlink(k_modules + "/h.ko", "etc/x").finish(),
         "image-unsafe"},
        {"relative to the working directory", good().hardlink(k_modules + "/h.ko", "victim").finish(), "image-unsafe"},
        {"to a symbolic link",
         good().symlink(k_modules + "/l.ko", "good.ko").hardlink(k_modules + "/h.ko", k_modules + "/l.ko").finish(),
         "image-unsafe"},
        {"to a directory", good().dir(k_modules + "/d").hardlink(k_modules + "/h", k_modules + "/d").finish(),
         "image-unsafe"},
    }, Exit::unsafe);
    expect_each({
        {"absent", good().hardlink(k_modules + "/h.ko", k_modules + "/absent.ko").finish(), "bad-layer"},
        {"before its target",
         TarBuilder().hardlink(k_modules + "/h.ko", k_modules + "/t.ko").file(k_modules + "/t.ko", "t").finish(),
         "bad-layer"},
        {"to nothing", good().hardlink(k_modules + "/h.ko", "").finish(), "bad-layer"},
        {"to the root", good().hardlink(k_modules + "/h.ko", "/").finish(), "bad-layer"},
        {"to itself", good().hardlink(k_modules + "/good.ko", k_modules + "/good.ko").finish(), "bad-layer"},
    }, Exit::data);
    for (const char* root : {"", "/"}) {  // kaniko names the file from the image's root on
        const Outcome inside = pull_tar(good().hardlink(k_modules + "/d/h.ko", root + k_modules + "/good.ko").finish());
        REQUIRE_MESSAGE(!inside.error, inside.message());
        CHECK(inside.files.at(k_modules + "/d/h.ko") == "good");
    }
}

TEST_CASE("M37 a second entry for a link applies nothing through it") {
    TarHeader again;
    again.name = k_modules + "/l.ko";
    again.mode = 04777;
    expect_each({
        {"file over link", good().symlink(k_modules + "/l.ko", "good.ko").raw(again).finish(), "image-unsafe"},
        {"directory over link", good().symlink(k_modules + "/l.ko", "good.ko").dir(k_modules + "/l.ko").finish(),
         "image-unsafe"},
    }, Exit::unsafe);
    // In a later layer the link is replaced; what it pointed at keeps its content.
    const Outcome outcome = pull_layers({gzip_layer(good().symlink(k_modules + "/l.ko", "good.ko").finish()),
                                         gzip_layer(TarBuilder().file(k_modules + "/l.ko", "new").finish())});
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/l.ko") == "new");
    CHECK(outcome.files.at(k_modules + "/good.ko") == "good");
}

TEST_CASE("M38 devices and pipes") {
    for (const char type : {'3', '4', '6'}) {
        TarHeader header;
        header.name = k_modules + "/x";
        header.type = type;
        CHECK(pull_tar(good().raw(header).finish()).code() == "image-unsafe");
        header.name = "dev/x";
        const Outcome outside = pull_tar(good().raw(header).finish());
        CHECK_FALSE(outside.error);
        CHECK(outside.files.size() == 1);
        header.name = "opt/lib";
        CHECK(pull_tar(good().raw(header).finish()).exit() == Exit::unsafe);
    }
}

TEST_CASE("M39 modes are ours") {
    TarHeader header = odd_entry();
    header.raw_mode = std::string("7777777\0", 8);
    TarHeader closed = odd_entry();
    closed.name = k_modules + "/closed.ko";
    closed.mode = 0;
    const Outcome outcome = pull_tar(good().raw(header, "odd").raw(closed, "odd").finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/odd.ko") == "odd");
    CHECK(outcome.modes.at(k_modules + "/odd.ko") == 0755);
    CHECK(outcome.modes.at(k_modules + "/closed.ko") == 0644);
    CHECK(outcome.modes.at(k_modules + "/good.ko") == 0644);
}

TEST_CASE("M41 owners are ours") {
    TarHeader header = odd_entry();
    header.raw_uid = std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    const Outcome outcome = pull_tar(good().raw(header, "odd").finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/odd.ko") == "odd");
}

TEST_CASE("M42 times are ours") {
    TarHeader header = odd_entry();
    header.raw_mtime = std::string("\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
    const Outcome outcome = pull_tar(good().raw(header, "odd").finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/odd.ko") == "odd");
}

TEST_CASE("M40 extended attributes and access lists are ignored") {
    const Outcome outcome = pull_tar(TarBuilder()
                                         .pax("SCHILY.xattr.security.capability", "x")
                                         .file(k_modules + "/a.ko", "a")
                                         .pax("SCHILY.xattr.trusted.overlay.opaque", "y")
                                         .file(k_modules + "/b.ko", "b")
                                         .pax("SCHILY.acl.access", "user::rwx")
                                         .file(k_modules + "/c.ko", "c").finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.size() == 3);
    CHECK(outcome.attributes == 0);
}

TEST_CASE("M44 an upper layer takes a module away and brings another") {
    const auto lower = gzip_layer(good().file(k_modules + "/sub/b.ko", "b").finish());
    const auto upper = [&](const TarBuilder& tar) { return pull_layers({lower, gzip_layer(tar.finish())}); };
    const Outcome replaced = upper(TarBuilder().file(k_modules + "/.wh.good.ko", "").file(k_modules + "/new.ko", "n"));
    REQUIRE_MESSAGE(!replaced.error, replaced.message());
    CHECK(replaced.files ==
          std::map<std::string, std::string>{{k_modules + "/sub/b.ko", "b"}, {k_modules + "/new.ko", "n"}});
    CHECK(upper(TarBuilder().file(k_modules + "/good.ko", "newer")).files.at(k_modules + "/good.ko") == "newer");
}

TEST_CASE("M43 whiteouts remove what lower layers hold, and only that") {
    const auto lower =
        gzip_layer(good().file(k_modules + "/sub/b.ko", "b").file("opt/lib/modules/5.10/x.ko", "x").finish());
    const auto upper = [&](const TarBuilder& tar) { return pull_layers({lower, gzip_layer(tar.finish())}); };

    const Outcome same_layer = upper(TarBuilder().file(k_modules + "/x.ko", "x").file(k_modules + "/.wh.x.ko", ""));
    CHECK(same_layer.files.at(k_modules + "/x.ko") == "x");

    const Outcome opaque = upper(TarBuilder().file(k_modules + "/x.ko", "x").file(k_modules + "/.wh..wh..opq", ""));
    CHECK(opaque.files == std::map<std::string, std::string>{{k_modules + "/x.ko", "x"}});
    CHECK(opaque.result.kernels_found == std::vector<std::string>{"5.10", k_kernel});

    const Outcome root = upper(TarBuilder().file(".wh..wh..opq", "").file(k_modules + "/x.ko", "x"));
    CHECK(root.files == std::map<std::string, std::string>{{k_modules + "/x.ko", "x"}});
    CHECK(root.result.kernels_found == std::vector<std::string>{k_kernel});

    const Outcome gone = upper(TarBuilder().file("opt/.wh.lib", ""));
    CHECK(gone.code() == "kernel-not-in-image");
    CHECK(gone.detail("kernels") == "none");

    CHECK_FALSE(upper(TarBuilder().file(k_modules + "/.wh.absent.ko", "")).error);
    CHECK(upper(TarBuilder().file(k_modules + "/.wh.", "")).code() == "bad-layer");
    CHECK(upper(TarBuilder().file(k_modules + "/.wh...", "")).code() == "image-unsafe");
    CHECK(upper(TarBuilder().file(k_modules + "/.wh..", "")).code() == "image-unsafe");
    CHECK(upper(TarBuilder().file("opt/.wh..wh..opq", "").file("opt/.wh..wh..opq", "")).code() == "bad-layer");
}

TEST_CASE("M43 a whiteout below a link is refused, as any entry there") {
    const auto lower = gzip_layer(good().file(k_modules + "/sub/b.ko", "b").symlink(k_modules + "/l", "sub").finish());
    for (const char* name : {"/l/.wh.b.ko", "/l/.wh..wh..opq", "/l/c/.wh.d"}) {
        CAPTURE(name);
        CHECK(pull_layers({lower, gzip_layer(TarBuilder().file(k_modules + name, "").finish())}).code() ==
              "image-unsafe");
    }
    const Outcome itself = pull_layers({lower, gzip_layer(TarBuilder().file(k_modules + "/.wh.l", "").finish())});
    REQUIRE_MESSAGE(!itself.error, itself.message());
    CHECK(itself.files.at(k_modules + "/sub/b.ko") == "b");
}

TEST_CASE("M45 two entries for one path; names that differ in case") {
    CHECK(pull_tar(good().file(k_modules + "/good.ko", "other").finish()).code() == "bad-layer");
    const Outcome twins = pull_tar(good().file(k_modules + "/GOOD.ko", "upper").finish());
    REQUIRE_MESSAGE(!twins.error, twins.message());
    CHECK(twins.files.at(k_modules + "/GOOD.ko") == "upper");
    CHECK(twins.files.at(k_modules + "/good.ko") == "good");
    CHECK(pull_tar(good().file(k_modules + "/good.ko/x", "x").finish()).code() == "bad-layer");
}

TEST_CASE("M46 odd and overlong names") {
    CHECK(pull_tar(good().file(k_modules + "/a\nb.ko", "x").finish()).code() == "image-unsafe");
    CHECK(pull_tar(good().file(k_modules + "/a\x1b[2Jb.ko", "x").finish()).code() == "image-unsafe");
    CHECK(pull_tar(good().file(k_modules + "/a\xff.ko", "x").finish()).code() == "image-unsafe");
    CHECK(pull_tar(good().file("x/" + std::string(256, 'a'), "x").finish()).code() == "image-limit");
    std::string deep;
    for (int i = 0; i < 2100; ++i) {
        deep += "a/";
    }
    const Outcome longer = pull_tar(good().file(deep + "x", "x").finish());
    CHECK(longer.code() == "image-limit");
    CHECK(longer.error->hint().find("--limit path_bytes=") != std::string::npos);
    const Outcome deeper = pull_tar(good().file(deep.substr(0, 2 * 65) + "x", "x").finish());
    CHECK(deeper.code() == "image-limit");
    CHECK(deeper.error->hint().find("--limit depth=") != std::string::npos);
    CHECK(pull_tar(good().file("", "x").finish()).exit() == Exit::data);
    for (const std::string_view content : {"", "x"}) {  // a file for some readers, a directory for others
        const Outcome slash = pull_tar(good().file(k_modules + "/x.ko/", content).finish());
        CHECK(slash.code() == "bad-layer");
        CHECK(slash.message() == "expected a file's name, found \"" + k_modules + "/x.ko/\" with a slash at its end");
        CHECK(pull_tar(good().pax("path", k_modules + "/x.ko/").file("x", content).finish()).code() == "bad-layer");
    }
    TarHeader old;
    old.name = k_modules + "/d/";
    old.type = '\0';
    CHECK(pull_tar(good().raw(old).dir(k_modules + "/e").finish()).code() == "ok");  // a directory, for all
}

TEST_CASE("M50 commands in modprobe's files are ignored and reported") {
    const Outcome outcome =
        pull_tar(good()
                     .file(k_modules + "/modules.softdep", "# x\nsoftdep a pre: b\ninstall a /bin/sh\n")
                     .file(k_modules + "/modules.alias", "alias x y\n")
                     .file("opt/etc/modprobe.d/evil.conf", "remove\ta /bin/true\n\tinstall b c\n")
                     .finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.warned("image-command-ignored: /" + k_modules + "/modules.softdep: 1 install or remove line"));
    CHECK(outcome.warned("image-command-ignored: /opt/etc/modprobe.d/evil.conf: 2 install or remove lines"));
    CHECK(outcome.result.warnings.size() == 2);
    CHECK(outcome.files.size() == 1);
}

TEST_CASE("M51 modules.dep and its kin never reach the disk") {
    const Outcome outcome = pull_tar(good()
                                         .file(k_modules + "/modules.dep", "/etc/evil.ko: ../../x.ko\n")
                                         .file(k_modules + "/modules.dep.bin", "\xb0\x07\xf4\x57")
                                         .file(k_modules + "/extra/modules.ko", "a module that is called modules")
                                         .finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == std::map<std::string, std::string>{
                               {k_modules + "/good.ko", "good"},
                               {k_modules + "/extra/modules.ko", "a module that is called modules"}});
}

TEST_CASE("M51 modules.dep and its kin never reach the disk as links either") {
    const Outcome outcome = pull_tar(good()
                                         .file(k_modules + "/notes", "install good touch /tmp/evil\n")
                                         .symlink(k_modules + "/modules.softdep", "notes")
                                         .hardlink(k_modules + "/modules.alias", k_modules + "/notes")
                                         .symlink(k_modules + "/modules.dep", "/etc/passwd")
                                         .finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files ==
          std::map<std::string, std::string>{{k_modules + "/good.ko", "good"},
                                             {k_modules + "/notes", "install good touch /tmp/evil\n"}});
}

TEST_CASE("M67 firmware that climbs out, also by a firmware directory that is a link") {
    const auto firmware = [](auto& request) { request.firmware_path = "/firmware"; };
    const auto code = [&](const TarBuilder& tar) {
        TarBuilder all = tar;
        return pull_tar(all.file(k_modules + "/a.ko", "a").finish(), firmware).code();
    };
    CHECK(code(TarBuilder().file("firmware/vendor/x.bin", "x")) == "ok");
    CHECK(code(TarBuilder().file("firmware/../x", "x")) == "image-unsafe");
    for (const char* target : {"../etc", "/../etc", "/", ".", "firmware", "a/../.."}) {
        CAPTURE(target);
        CHECK(code(TarBuilder().symlink("firmware", target).file("etc/x", "x")) == "image-unsafe");
    }
    CHECK(code(TarBuilder().symlink("firmware", "etc").file("firmware/x", "x")) == "image-unsafe");
    CHECK(code(TarBuilder().file("firmware/x", "x").symlink("firmware", "etc")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("firmware", "etc").symlink("etc/x", "../opt/x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("firmware/x", "../../etc/shadow")) == "image-unsafe");
    CHECK(code(TarBuilder().file("firmware/a\nb", "x")) == "image-unsafe");
    for (const char* path : {"/firmware/../..", "/", ".."}) {
        CHECK(pull_tar(TarBuilder().file(k_modules + "/a.ko", "a").finish(), [&](auto& request) {
                  request.firmware_path = path;
              }).code() == "bad-path");
    }
}

}
