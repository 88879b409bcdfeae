// SPDX-License-Identifier: Apache-2.0
// Links of modules and firmware to files that lie elsewhere in the image.
#include <doctest/doctest.h>

#include "registry/client/request.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

const std::string k_other = "opt/lib/modules/6.1.0-1-other";
const std::string k_link = k_modules + "/weak-updates/x/a.ko";

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("a link to a module elsewhere in the image becomes that module") {
    const auto with = [](const std::string& file, const std::string& target) {
        return pull_tar(TarBuilder().file(file, "module").symlink(k_link, target).finish());
    };
    for (const auto& [file, target] : std::vector<std::pair<std::string, std::string>>{
             {k_other + "/extra/a.ko", "../../../6.1.0-1-other/extra/a.ko"},  // as weak-modules makes it
             {k_other + "/extra/a.ko", "/" + k_other + "/extra/a.ko"},
             {"srv/b.ko", "../../../../../../srv/b.ko"},
             {"srv/b.ko.xz", "/srv//./b.ko.xz"}}) {
        CAPTURE(target);
        const Outcome outcome = with(file, target);
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.size() == 1);
        CHECK(outcome.files.at(k_link) == "module");
        CHECK(outcome.result.warnings.empty());
    }
    SUBCASE("the link may come before the file, and in another layer") {
        const Outcome outcome =
            pull_layers({plain_layer(TarBuilder().symlink(k_link, "/srv/b.ko").file(k_modules + "/c.ko", "c").finish()),
                         plain_layer(TarBuilder().file("srv/b.ko", "module").finish())});
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files == std::map<std::string, std::string>{{k_link, "module"}, {k_modules + "/c.ko", "c"}});
    }
    SUBCASE("two links may mean one file") {
        const Outcome outcome = pull_tar(TarBuilder()
                                             .file("srv/b.ko", "module")
                                             .symlink(k_link, "/srv/b.ko")
                                             .symlink(k_modules + "/b.ko", "/srv/b.ko")
                                             .finish());
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files == std::map<std::string, std::string>{{k_link, "module"}, {k_modules + "/b.ko", "module"}});
    }
    SUBCASE("an absolute link inside of the directory is a link there") {
        const Outcome outcome = with(k_modules + "/extra/a.ko", "/" + k_modules + "/extra/a.ko");
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.at(k_link) == "-> ../../extra/a.ko");
    }
    SUBCASE("so is one to a directory, and one that comes back from above") {
        const std::string other = "opt/lib/modules/6.1.0-1-same";
        for (const std::string& target :
             {"/" + k_modules, "../modules/" + k_kernel, "./..//../lib/modules/" + k_kernel}) {
            CAPTURE(target);
            const Outcome outcome = pull_tar(
                TarBuilder().file(k_modules + "/a.ko", "a").symlink(k_modules + "/x", "/" + k_modules + "/y").symlink(
                    other, target).file(k_modules + "/y/b.ko", "b").finish(),
                [](registry::PullRequest& request) {
                    request.kernels.clear();
                    request.all_kernels = true;
                });
            REQUIRE_MESSAGE(!outcome.error, outcome.message());
            CHECK(outcome.files == std::map<std::string, std::string>{{k_modules + "/a.ko", "a"},
                                                                      {k_modules + "/x", "-> y"},
                                                                      {k_modules + "/y/b.ko", "b"},
                                                                      {other, "-> " + k_kernel}});
        }
    }
    SUBCASE("firmware, too") {
        const Outcome outcome = pull_tar(TarBuilder()
                                             .file(k_modules + "/a.ko", "a")
                                             .file("usr/lib/firmware/x.bin", "fw")
                                             .symlink("firmware/x.bin", "/usr/lib/firmware/x.bin")
                                             .finish(),
                                         [](registry::PullRequest& request) { request.firmware_path = "/firmware"; });
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.at("firmware/x.bin") == "fw");
    }
    SUBCASE("a directory of the way may be a link") {
        const Outcome outcome = pull_tar(TarBuilder()
                                             .symlink("opt/lib/modules/" + k_kernel, "6.1.0-1-real")
                                             .file("opt/lib/modules/6.1.0-1-real/c.ko", "c")
                                             .symlink("opt/lib/modules/6.1.0-1-real/a.ko", "/srv/b.ko")
                                             .file("srv/b.ko", "module")
                                             .finish());
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.at(k_modules + "/a.ko") == "module");
    }
}

TEST_CASE("a link to a module elsewhere leads there over other links of the image") {
    const auto pulled = [](const std::vector<TestLayer>& layers) {
        const Outcome outcome = pull_layers(layers);
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.result.warnings.empty());
        return outcome.files;
    };
    const std::string built = "usr/lib/modules/6.1.0-1-other/extra/a.ko";
    const auto link = plain_layer(TarBuilder().symlink(k_link, "/lib/modules/6.1.0-1-other/extra/a.ko").finish());
    const auto file = plain_layer(TarBuilder().file(built, "module").finish());
    const std::map<std::string, std::string> module{{k_link, "module"}};
    SUBCASE("a directory of a merged /usr, in whichever layer") {
        for (const char* to : {"usr/lib", "/usr/lib", "./usr/../usr/lib/"}) {
            CAPTURE(to);
            const auto merged = plain_layer(TarBuilder().symlink("lib", to).finish());
            CHECK(pulled({merged, file, link}) == module);
            CHECK(pulled({link, file, merged}) == module);
        }
    }
    SUBCASE("a name without a version, several links, and a file that came to the same place earlier") {
        const auto links = TarBuilder()
                               .symlink("lib", "/srv/lib")
                               .symlink("srv/lib", "../usr/lib")
                               .symlink("usr/lib/modules/6.1.0-1-other/extra/a.ko", "../a-1.2.ko")
                               .file("usr/lib/modules/6.1.0-1-other/a-1.2.ko", "module")
                               .finish();
        CHECK(pulled({link, plain_layer(links)}) == module);
        const auto earlier = plain_layer(TarBuilder().file("lib/modules/6.1.0-1-other/extra/a.ko", "old").finish());
        CHECK(pulled({earlier, link, plain_layer(links)}) == module);
    }
    SUBCASE("back into the directory that is taken") {
        const auto back = TarBuilder()
                              .symlink("lib", "opt/lib")
                              .file(k_modules + "/a.ko", "module")
                              .symlink(k_link, "/lib/modules/" + k_kernel + "/a.ko")
                              .finish();
        CHECK(pulled({plain_layer(back)}) ==
              std::map<std::string, std::string>{{k_link, "module"}, {k_modules + "/a.ko", "module"}});
    }
    SUBCASE("not in a circle, out of the image, or to what is no module") {
        for (const auto& [path, target] : std::vector<std::pair<std::string, std::string>>{
                 {"lib", "lib"}, {"lib/modules/6.1.0-1-other/extra/a.ko", "/etc/shadow"}, {"lib", "/etc"}}) {
            CAPTURE(target);
            const auto odd = TarBuilder().symlink(path, target).file("etc/shadow", "x").finish();
            const Outcome outcome = pull_layers({link, plain_layer(odd)});
            REQUIRE_MESSAGE(!outcome.error, outcome.message());
            CHECK(outcome.files.empty());
            CHECK(outcome.warned("dangling-link"));
        }
    }
}

TEST_CASE("what such a link does not mean is not taken") {
    const auto pulled = [](const std::vector<TestLayer>& layers) { return pull_layers(layers); };
    const TestLayer link =
        plain_layer(TarBuilder().file(k_modules + "/c.ko", "c").symlink(k_link, "/srv/b.ko").finish());
    const TestLayer file = plain_layer(TarBuilder().file("srv/b.ko", "module").finish());
    const auto leads_nowhere = [&](const Outcome& outcome) {
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.size() == 1);
        CHECK(outcome.warned("dangling-link"));
        CHECK(outcome.warned("copy the file"));
    };
    SUBCASE("there is none") { leads_nowhere(pulled({link})); }
    SUBCASE("a later layer takes it away") {
        leads_nowhere(pulled({link, file, plain_layer(TarBuilder().file("srv/.wh.b.ko", "").finish())}));
    }
    SUBCASE("a later layer takes its directory away") {
        leads_nowhere(pulled({link, file, plain_layer(TarBuilder().file(".wh.srv", "").finish())}));
    }
    SUBCASE("a later layer has a file in the place of its directory") {
        leads_nowhere(pulled({link, file, plain_layer(TarBuilder().file("srv", "x").finish())}));
    }
    SUBCASE("it is a link itself") {
        leads_nowhere(pulled({link, plain_layer(TarBuilder().symlink("srv/b.ko", "/etc/shadow").finish())}));
    }
    SUBCASE("it is a directory") {
        leads_nowhere(pulled({link, plain_layer(TarBuilder().file("srv/b.ko/x", "x").finish())}));
    }
    SUBCASE("a later layer has something else in the place of the link") {
        const Outcome outcome = pulled({link, file, plain_layer(TarBuilder().file(k_link, "own").finish())});
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.at(k_link) == "own");
    }
    SUBCASE("a later layer takes the link away") {
        CHECK(pulled({link, file, plain_layer(TarBuilder().file(k_modules + "/weak-updates/x/.wh.a.ko", "").finish())})
                  .files.size() == 1);
    }
    SUBCASE("other names are refused as before") {
        const Outcome outcome = pull_tar(TarBuilder().file("etc/shadow", "x").symlink(k_link, "/etc/shadow").finish());
        CHECK(outcome.code() == "image-unsafe");
        CHECK(pull_tar(TarBuilder().symlink(k_link, "../../../../../../../../b.ko").finish()).code() == "image-unsafe");
    }
    SUBCASE("what lies there, or goes, by another entry below a link: readers see different files") {
        const auto srv = plain_layer(TarBuilder().symlink("srv", "/data").symlink("other", "srv").finish());
        const auto real = plain_layer(TarBuilder().file("data/b.ko", "module").finish());
        const auto hard = plain_layer(TarBuilder().hardlink(k_link, "srv/b.ko").finish());
        CHECK(pulled({srv, real, link}).files.at(k_link) == "module");
        for (const char* entry : {"srv/b.ko", "other/b.ko", "srv/.wh.b.ko", "other/.wh..wh..opq"}) {
            CAPTURE(entry);
            CHECK(pulled({srv, real, link, plain_layer(TarBuilder().file(entry, "x").finish())}).code() ==
                  "image-unsafe");
        }
        CHECK(pulled({srv, plain_layer(TarBuilder().file("srv/b.ko", "old").finish()), real, hard}).code() ==
              "image-unsafe");
        CHECK(pulled({srv, real, link, plain_layer(TarBuilder().file("srv/unrelated", "x").finish())})
                  .files.at(k_link) == "module");
    }
    SUBCASE("what lies in a directory that the same layer has something else in the place of") {
        for (const char* place : {"srv", "srv/deep"}) {
            CAPTURE(place);
            const auto file_below = [] { return TarBuilder().file("srv/deep/b.ko", "module"); };
            const auto far = plain_layer(TarBuilder().symlink(k_link, "/srv/deep/b.ko").finish());
            CHECK(pulled({far, plain_layer(file_below().symlink(place, "/data").finish())}).code() == "image-unsafe");
            CHECK(pulled({far, plain_layer(file_below().file(place, "x").finish())}).code() == "image-unsafe");
            CHECK(pulled({far, plain_layer(file_below().finish())}).files.at(k_link) == "module");
        }
    }
    SUBCASE("an entry below the link is hostile") {
        CHECK(pull_tar(
                  TarBuilder().file("srv/b.ko", "x").symlink(k_link, "/srv/b.ko").file(k_link + "/c.ko", "x").finish())
                  .code() == "image-unsafe");
    }
}

TEST_CASE("a whiteout behind such a link in its layer is about lower layers alone") {
    const std::string directory = k_modules + "/extra/", lower = "srv/b.ko";
    const auto old = plain_layer(TarBuilder().file(directory + "a.ko", "old").file(lower, "module").finish());
    for (const char* whiteout : {".wh..wh..opq", ".wh.a.ko"}) {
        CAPTURE(whiteout);
        for (const bool hard : {true, false}) {
            TarBuilder tar;
            tar.file(directory + "c.ko", "c");
            hard ? tar.hardlink(directory + "a.ko", lower) : tar.symlink(directory + "a.ko", "/" + lower);
            const Outcome outcome = pull_layers({old, plain_layer(tar.file(directory + whiteout, "").finish())});
            REQUIRE_MESSAGE(!outcome.error, outcome.message());
            CHECK(outcome.files == std::map<std::string, std::string>{{directory + "a.ko", "module"},
                                                                      {directory + "c.ko", "c"}});
        }
    }
    const auto below = TarBuilder()
                           .symlink(k_modules + "/build", "/usr/src/linux")
                           .file(k_modules + "/.wh..wh..opq", "")
                           .file(k_modules + "/build/a.ko", "x")
                           .finish();
    CHECK(pull_tar(below).code() == "image-unsafe");
}

TEST_CASE("a hard link to a module elsewhere in the image is that module") {
    const std::string twin = k_modules + "/extra/a.ko";
    const std::string first = k_other + "/extra/a.ko";  // archives name the first of two equal files
    const Outcome outcome = pull_tar(TarBuilder().file(first, "module").hardlink(twin, first).finish());
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == std::map<std::string, std::string>{{twin, "module"}});
    CHECK(outcome.result.warnings.empty());
    SUBCASE("as it is when the link is made, whatever comes later") {
        const Outcome later = pull_layers({plain_layer(TarBuilder().file(first, "module").finish()),
                                           plain_layer(TarBuilder().hardlink(twin, first).finish()),
                                           plain_layer(TarBuilder().file(first, "newer").finish())});
        REQUIRE_MESSAGE(!later.error, later.message());
        CHECK(later.files == std::map<std::string, std::string>{{twin, "module"}});
    }
    SUBCASE("in the place of a file of a lower layer") {
        const auto both = plain_layer(TarBuilder().file(first, "new").hardlink(twin, first).finish());
        const Outcome later = pull_layers({plain_layer(TarBuilder().file(twin, "old").finish()), both});
        REQUIRE_MESSAGE(!later.error, later.message());
        CHECK(later.files == std::map<std::string, std::string>{{twin, "new"}});
    }
    SUBCASE("until a later layer takes it away or replaces it") {
        const auto both = plain_layer(TarBuilder().file(first, "module").hardlink(twin, first).finish());
        const Outcome gone =
            pull_layers({both, plain_layer(TarBuilder().file(k_modules + "/extra/.wh.a.ko", "").finish())});
        REQUIRE_MESSAGE(!gone.error, gone.message());
        CHECK(gone.files.empty());
        const Outcome replaced = pull_layers({both, plain_layer(TarBuilder().file(twin, "own").finish())});
        REQUIRE_MESSAGE(!replaced.error, replaced.message());
        CHECK(replaced.files == std::map<std::string, std::string>{{twin, "own"}});
    }
    SUBCASE("two links may mean one file, and a symbolic link the same") {
        const Outcome several = pull_tar(TarBuilder()
                                             .file("srv/b.ko", "module")
                                             .hardlink(twin, "srv/b.ko")
                                             .hardlink(k_modules + "/b.ko", "/srv/b.ko")
                                             .symlink(k_link, "/srv/b.ko")
                                             .finish());
        REQUIRE_MESSAGE(!several.error, several.message());
        CHECK(several.files == std::map<std::string, std::string>{
                                   {twin, "module"}, {k_modules + "/b.ko", "module"}, {k_link, "module"}});
    }
    SUBCASE("a symbolic link to such a hard link, too") {
        for (const std::string& target : std::vector<std::string>{"srv/a.ko", "/srv/a.ko", twin}) {
            CAPTURE(target);
            const std::string plain = target.substr(target.starts_with('/') ? 1 : 0);
            const auto link = plain_layer(TarBuilder().symlink(k_link, "/" + first).finish());
            const auto files = plain_layer(TarBuilder().file(plain, "module").hardlink(first, target).finish());
            const auto later = plain_layer(TarBuilder().file(plain, "newer").finish());
            for (const auto& layers : {std::vector{link, files}, std::vector{files, link},
                                       std::vector{files, later, link}}) {
                const Outcome far = pull_layers(layers);
                REQUIRE_MESSAGE(!far.error, far.message());
                CHECK(far.files.at(k_link) == "module");
                CHECK(far.result.warnings.empty());
            }
        }
        const Outcome chain = pull_tar(TarBuilder()
                                           .file("srv/a.ko", "module")
                                           .hardlink(first, "srv/a.ko")
                                           .hardlink(twin, first)
                                           .symlink(k_link, "/" + first)
                                           .finish());
        REQUIRE_MESSAGE(!chain.error, chain.message());
        CHECK(chain.files == std::map<std::string, std::string>{{twin, "module"}, {k_link, "module"}});
    }
    SUBCASE("a symbolic link to one that leads nowhere is left out") {
        for (const std::string& target : std::vector<std::string>{"srv/none.ko", first, "srv/b.ko"}) {
            CAPTURE(target);
            const Outcome none = pull_tar(TarBuilder()
                                              .file(k_modules + "/c.ko", "c")
                                              .symlink("srv/b.ko", "c.ko")
                                              .hardlink(first, target)
                                              .symlink(k_link, "/" + first)
                                              .finish());
            REQUIRE_MESSAGE(!none.error, none.message());
            CHECK(none.files.size() == 1);
            REQUIRE(none.result.warnings.size() == 1);
            CHECK(none.result.warnings.front().starts_with("dangling-link: /" + k_link));
        }
    }
    SUBCASE("firmware, too") {
        const Outcome firmware = pull_tar(TarBuilder()
                                              .file(k_modules + "/a.ko", "a")
                                              .file("usr/lib/firmware/x.bin", "fw")
                                              .hardlink("vendor/x.bin", "usr/lib/firmware/x.bin")
                                              .finish(),
                                          [](registry::PullRequest& request) { request.firmware_path = "/vendor"; });
        REQUIRE_MESSAGE(!firmware.error, firmware.message());
        CHECK(firmware.files.at("vendor/x.bin") == "fw");
    }
    SUBCASE("a target that did not come before, or is no file, is a fault of the layer") {
        CHECK(pull_tar(TarBuilder().hardlink(twin, first).finish()).code() == "bad-layer");
        CHECK(pull_tar(TarBuilder().hardlink(twin, first).file(first, "module").finish()).code() == "bad-layer");
        CHECK(pull_tar(TarBuilder().symlink(first, "b.ko").hardlink(twin, first).finish()).code() == "bad-layer");
        CHECK(pull_layers({plain_layer(TarBuilder().file(first, "module").finish()),
                           plain_layer(TarBuilder().file(k_other + "/extra/.wh.a.ko", "").finish()),
                           plain_layer(TarBuilder().hardlink(twin, first).finish())})
                  .code() == "bad-layer");
    }
    SUBCASE("two entries for its path are as before") {
        CHECK(pull_tar(TarBuilder().file(first, "m").hardlink(twin, first).file(twin, "x").finish()).code() ==
              "bad-layer");
        CHECK(pull_tar(TarBuilder().file(first, "m").file(twin, "x").hardlink(twin, first).finish()).code() ==
              "bad-layer");
        CHECK(pull_tar(TarBuilder().file(first, "m").symlink(twin, "/" + first).file(twin, "x").finish()).code() ==
              "image-unsafe");
    }
}

}
