// SPDX-License-Identifier: Apache-2.0
// Images whose way to the modules goes through symbolic links, as that of every usr-merged base image does.
// pull_from() checks after every failure that nothing is left on disk and nothing beside it was touched.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "registry/client/request.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Files = std::map<std::string, std::string>;

const std::string k_root_modules = "lib/modules/" + k_kernel;
const std::string k_usr_modules = "usr/lib/modules/" + k_kernel;

void at_root(registry::PullRequest& request) { request.dir_name = "/"; }

/// What every usr-merged base image begins with.
TarBuilder merged() {
    return TarBuilder()
        .symlink("bin", "usr/bin")
        .file("etc/passwd", "x")
        .symlink("lib", "usr/lib")
        .file("usr/lib/os-release", "x");
}

/// Pulls and says how many blobs were asked for.
std::pair<Outcome, std::size_t> counted(const std::vector<TestLayer>& layers,
                                        const std::function<void(registry::PullRequest&)>& tweak) {
    FakeRegistry registry;
    registry.add_image("v1", layers);
    std::size_t blobs = 0;
    registry.intercept = [&](const FakeRequest& request) {
        blobs += request.target.find("/blobs/") != std::string::npos ? 1U : 0U;
        return std::nullopt;
    };
    Outcome outcome = pull_from(registry, tweak);
    return {std::move(outcome), blobs};
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("modules in /lib/modules of a usr-merged image, in one reading") {
    const auto base = gzip_layer(merged().finish());
    const auto top = gzip_layer(TarBuilder()
                                    .dir("usr")
                                    .dir("usr/lib")
                                    .file(k_usr_modules + "/a.ko", "a")
                                    .file(k_usr_modules + "/sub/b.ko", "b")
                                    .symlink(k_usr_modules + "/l.ko", "sub/../a.ko")
                                    .file("usr/lib/modules/5.10/x.ko", "x")
                                    .symlink("usr/lib/modules/5.11", "/lib/modules/5.10")
                                    .finish());
    const auto [outcome, blobs] = counted({base, top}, at_root);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == Files{{k_root_modules + "/a.ko", "a"},
                                 {k_root_modules + "/sub/b.ko", "b"},
                                 {k_root_modules + "/l.ko", "-> sub/../a.ko"}});
    CHECK(outcome.result.kernels_found == std::vector<std::string>{"5.10", k_kernel});
    CHECK(outcome.listed.at(0).path == "/" + k_root_modules + "/a.ko");
    CHECK(blobs == 3);  // the configuration and each layer once
    const Outcome all = pull_layers({base, top}, [](auto& request) {
        at_root(request);
        request.all_kernels = true;
        request.kernels.clear();
    });
    CHECK(all.files.size() == 5);
    CHECK(all.files.at("lib/modules/5.10/x.ko") == "x");
    CHECK(all.files.at("lib/modules/5.11") == "-> 5.10");
    CHECK(pull_layers({base, top}, [](auto& request) {
              at_root(request);
              request.kernels = {"4.19"};
          }).detail("kernels") == "5.10, " + k_kernel);
}

TEST_CASE("firmware of a usr-merged image") {
    const auto tweak = [](auto& request) { at_root(request); request.firmware_path = "/lib/firmware"; };
    const Outcome outcome =
        pull_tar(merged().file(k_usr_modules + "/a.ko", "a").file("usr/lib/firmware/v/x.bin", "f").finish(), tweak);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == Files{{k_root_modules + "/a.ko", "a"}, {"lib/firmware/v/x.bin", "f"}});
}

TEST_CASE("a firmware directory that is a link, to any directory of the image") {
    const auto tweak = [](auto& request) { at_root(request); request.firmware_path = "/lib/firmware"; };
    const Files expected{
        {k_root_modules + "/a.ko", "a"}, {"lib/firmware/v/x.bin", "f"}, {"lib/firmware/y.bin", "-> v/x.bin"}};
    const auto module = [](const TarBuilder& tar) { return TarBuilder(tar).file(k_usr_modules + "/a.ko", "a"); };
    const auto blob = [](const TarBuilder& tar) {
        return TarBuilder(tar).file("srv/fw/v/x.bin", "f").symlink("srv/fw/y.bin", "v/x.bin");
    };
    CHECK(pull_tar(blob(module(merged()).symlink("usr/lib/firmware", "../../srv/fw")).finish(), tweak).files ==
          expected);
    CHECK(pull_tar(blob(module(merged()).symlink("usr/lib/firmware", "/srv/fw")).finish(), tweak).files == expected);
    CHECK(pull_tar(blob(TarBuilder()
                            .symlink("usr/lib/firmware", "fw2")
                            .symlink("lib", "usr/lib")
                            .symlink("usr/lib/fw2", "/srv/fw"))
                       .file(k_usr_modules + "/a.ko", "a")
                       .finish(),
                   tweak)
              .files == expected);
    // The files first: the layers are read once more. A real directory of a later layer takes the place of the link.
    const auto files = gzip_layer(blob(module(merged())).finish());
    const auto link = gzip_layer(TarBuilder().symlink("usr/lib/firmware", "/srv/fw").finish());
    const auto [outcome, blobs] = counted({files, link}, tweak);
    CHECK(outcome.files == expected);
    CHECK(blobs == 5);
    CHECK(pull_layers({files, link,
                       gzip_layer(TarBuilder().dir("usr/lib/firmware").file("usr/lib/firmware/z.bin", "z").finish())},
                      tweak)
              .files == Files{{k_root_modules + "/a.ko", "a"}, {"lib/firmware/z.bin", "z"}});
    // It may even lie among the modules.
    const auto near = [](auto& request) { request.firmware_path = "/fw"; };
    CHECK(pull_tar(TarBuilder()
                       .symlink("fw", k_modules + "/fw")
                       .file(k_modules + "/a.ko", "a")
                       .file(k_modules + "/fw/x.bin", "f")
                       .finish(),
                   near)
              .files == Files{{k_modules + "/a.ko", "a"}, {k_modules + "/fw/x.bin", "f"}, {"fw/x.bin", "f"}});
}

TEST_CASE("links at every place of the way are followed, relative and absolute ones") {
    const std::string real = "srv/drivers/lib/modules/" + k_kernel;
    const std::vector<std::pair<const char*, TarBuilder>> rows = {
        {"dirName", TarBuilder().symlink("opt", "srv/drivers").file(real + "/a.ko", "a")},
        {"absolute, in the image", TarBuilder().symlink("opt", "/srv/drivers").file(real + "/a.ko", "a")},
        {"lib", TarBuilder().symlink("opt/lib", "../usr/lib").file(k_usr_modules + "/a.ko", "a")},
        {"modules", TarBuilder().symlink("opt/lib/modules", "../../kmods").file("kmods/" + k_kernel + "/a.ko", "a")},
        {"kernel", TarBuilder().symlink(k_modules, "zz").file("opt/lib/modules/zz/a.ko", "a")},
        {"a link to a link",
         TarBuilder().symlink("opt/lib", "../x/y").symlink("x", "z").file("z/y/modules/" + k_kernel + "/a.ko", "a")},
        {"all of them", TarBuilder()
                            .symlink("opt", "srv")
                            .symlink("srv/lib", "/usr/lib")
                            .symlink("usr/lib", "lib64")
                            .symlink("usr/lib64/modules", "./kmods/")
                            .symlink("usr/lib64/kmods/" + k_kernel, "../kmods/zz")
                            .file("usr/lib64/kmods/zz/a.ko", "a")},
    };
    for (const auto& [what, tar] : rows) {
        CAPTURE(what);
        const auto [outcome, blobs] = counted({gzip_layer(tar.finish())}, nullptr);
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files == Files{{k_modules + "/a.ko", "a"}});
        CHECK(outcome.result.kernels_found.size() >= 1);
        CHECK(std::count(outcome.result.kernels_found.begin(), outcome.result.kernels_found.end(), k_kernel) == 1);
        CHECK(blobs == 2);
    }
}

TEST_CASE("a link that comes after the files: the layers are read once more") {
    const auto files =
        gzip_layer(TarBuilder().file(k_usr_modules + "/a.ko", "a").file("usr/lib/modules/aa/b.ko", "b").finish());
    const auto link = gzip_layer(TarBuilder().symlink("opt/lib", "../usr/lib").finish());
    const auto [outcome, blobs] = counted({files, link}, nullptr);
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files == Files{{k_modules + "/a.ko", "a"}});
    CHECK(outcome.result.kernels_found == std::vector<std::string>{k_kernel, "aa"});
    CHECK(blobs == 5);
    const auto kernel = gzip_layer(TarBuilder().file("opt/lib/modules/aa/b.ko", "b").symlink(k_modules, "aa").finish());
    CHECK(pull_layers({kernel}).files == Files{{k_modules + "/b.ko", "b"}});
}

TEST_CASE("a kernel that is a link to another, when both are wanted, and when all are") {
    const std::string tar = TarBuilder()
                                .file("opt/lib/modules/aa/a.ko", "a")
                                .symlink("opt/lib/modules/aa/up.ko", "../aa/a.ko")
                                .symlink(k_modules, "aa")
                                .finish();
    const Outcome both = pull_tar(tar, [](auto& request) { request.kernels = {k_kernel, "aa"}; });
    REQUIRE_MESSAGE(!both.error, both.message());
    CHECK(both.files == Files{{k_modules + "/a.ko", "a"},
                              {k_modules + "/up.ko", "-> a.ko"},
                              {"opt/lib/modules/aa/a.ko", "a"},
                              {"opt/lib/modules/aa/up.ko", "-> a.ko"}});
    const Outcome all = pull_tar(tar, [](auto& request) { request.all_kernels = true; request.kernels.clear(); });
    REQUIRE_MESSAGE(!all.error, all.message());
    CHECK(all.files == Files{{"opt/lib/modules/" + k_kernel, "-> aa"},
                             {"opt/lib/modules/aa/a.ko", "a"},
                             {"opt/lib/modules/aa/up.ko", "-> ../aa/a.ko"}});
    CHECK(all.result.kernels_found == std::vector<std::string>{k_kernel, "aa"});
}

TEST_CASE("what the last layer says of the way counts") {
    const auto merged_base = gzip_layer(merged().file(k_usr_modules + "/a.ko", "usr").finish());
    // A directory takes the place of the link: nothing of what the link led to is there any more.
    const auto directory = gzip_layer(TarBuilder().dir("lib").file(k_root_modules + "/b.ko", "own").finish());
    CHECK(pull_layers({merged_base, directory}, at_root).files == Files{{k_root_modules + "/b.ko", "own"}});
    // The link is taken away.
    CHECK(pull_layers({merged_base, gzip_layer(TarBuilder().file(".wh.lib", "").finish())}, at_root).code() ==
          "kernel-not-in-image");
    CHECK(pull_layers({merged_base, gzip_layer(TarBuilder().file(".wh..wh..opq", "").finish())}, at_root).code() ==
          "kernel-not-in-image");
    // It leads elsewhere.
    const auto moved =
        gzip_layer(TarBuilder().symlink("lib", "srv").file("srv/modules/" + k_kernel + "/c.ko", "srv").finish());
    CHECK(pull_layers({merged_base, moved}, at_root).files == Files{{k_root_modules + "/c.ko", "srv"}});
    // It takes the place of a directory.
    CHECK(pull_layers({directory, merged_base}, at_root).files == Files{{k_root_modules + "/a.ko", "usr"}});
    // It goes, and comes back.
    CHECK(pull_layers({merged_base, directory, gzip_layer(TarBuilder().symlink("lib", "usr/lib").finish())}, at_root)
              .files == Files{{k_root_modules + "/a.ko", "usr"}});
    // What it leads to is taken away.
    CHECK(pull_layers(
              {merged_base,
               gzip_layer(
                   TarBuilder().file(k_usr_modules + "/.wh.a.ko", "").file(k_usr_modules + "/d.ko", "d").finish())},
              at_root)
              .files == Files{{k_root_modules + "/d.ko", "d"}});
}

TEST_CASE("links on the way that leave the image or lead nowhere are refused") {
    const auto code = [](const TarBuilder& tar) { return pull_tar(tar.finish()).code(); };
    const std::string file = "etc/lib/modules/" + k_kernel + "/x.ko";
    CHECK(code(TarBuilder().symlink("opt", "../etc").file(file, "x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("opt", "/../etc").file(file, "x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("opt/lib", "../../etc/lib").file(file, "x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("opt", "opt")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("opt", "a").symlink("a", "b").symlink("b", "/opt")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("opt/lib/modules", "/").file(k_kernel + "/x.ko", "x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink(k_modules, "../../../srv").file("srv/x.ko", "x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink(k_modules, ".").file("opt/lib/modules/x.ko", "x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink(k_modules, "a/b").file("opt/lib/modules/a/b/x.ko", "x")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("opt", "")) == "bad-layer");
    CHECK(code(TarBuilder().symlink("opt", "nowhere")) == "kernel-not-in-image");
    CHECK(code(TarBuilder().symlink("opt", "srv").file("srv", "x")) == "image-unsafe");
    // What lies behind a link that is followed keeps to the rules of the wanted part.
    CHECK(code(TarBuilder().symlink("opt", "etc").file(file, "x").device("etc/lib/modules/" + k_kernel + "/d")) ==
          "image-unsafe");
    CHECK(code(TarBuilder()
                   .symlink("opt", "etc")
                   .file(file, "x")
                   .symlink("etc/lib/modules/" + k_kernel + "/l", "/etc/shadow")) == "image-unsafe");
    CHECK(code(TarBuilder()
                   .symlink("opt", "etc")
                   .file(file, "x")
                   .symlink("etc/lib/modules/" + k_kernel + "/l", "../../../shadow")) == "image-unsafe");
    CHECK(code(TarBuilder().symlink("opt", "etc").file(file, "x").symlink("etc/lib", "lib2")) == "image-unsafe");
}

TEST_CASE("an entry below a link on the way is refused, whichever comes first") {
    const std::string real = "srv/lib/modules/" + k_kernel;
    const auto good = TarBuilder().symlink("opt", "srv").file(real + "/a.ko", "a");
    const auto code = [](const TarBuilder& tar) { return pull_tar(tar.finish()).code(); };
    CHECK(code(TarBuilder(good).file(k_modules + "/x.ko", "x")) == "image-unsafe");
    CHECK(code(TarBuilder(good).file("opt/other", "x")) == "image-unsafe");
    CHECK(code(TarBuilder(good).file("opt/.wh.lib", "")) == "image-unsafe");
    CHECK(code(TarBuilder().file(k_modules + "/x.ko", "x").symlink("opt", "srv")) == "image-unsafe");
    CHECK(code(TarBuilder().file("opt/lib/modules/5.10/x.ko", "x").symlink("opt", "srv")) == "image-unsafe");
    CHECK(code(TarBuilder(good).dir("opt")) == "image-unsafe");
    CHECK(code(TarBuilder(good).symlink("opt", "srv")) == "image-unsafe");
    CHECK(pull_layers({gzip_layer(good.finish()), gzip_layer(TarBuilder().file(k_modules + "/x.ko", "x").finish())})
              .code() == "image-unsafe");
    // Elsewhere in the image it means nothing here.
    CHECK(code(TarBuilder(good).symlink("var/run", "/run").file("var/run/x", "x")) == "ok");
}

TEST_CASE("more links than anybody follows cost a bounded time and memory") {
    TarBuilder tar;
    for (int i = 0; i < 60; ++i) {
        tar.symlink("l" + std::to_string(i), "l" + std::to_string(i + 1));
    }
    CHECK(pull_tar(tar.symlink("opt", "l0").finish()).code() == "image-unsafe");
    TarBuilder many;
    const std::string filler(2000, 'x');
    for (int i = 0; i < 3000; ++i) {
        many.pax("linkpath", filler).symlink("d/" + std::to_string(i), "x");
    }
    CHECK(pull_tar(TarBuilder(many).file(k_modules + "/a.ko", "a").finish()).code() == "ok");
    CHECK(pull_tar(TarBuilder(many).symlink("opt", "srv").file("srv/lib/modules/" + k_kernel + "/a.ko", "a").finish())
              .code() == "image-unsafe");
}

}
