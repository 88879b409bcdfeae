// SPDX-License-Identifier: Apache-2.0
// Where the changed file of a link lies, so that it is what is loaded under the link's name.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "registry/client/request.hpp"
#include "unit/registry/rewrite_fixture.hpp"

using namespace kmm;

namespace {

using Files = std::map<std::string, std::string>;

/// The image of these layers, changed, as it is pulled again.
Files rewritten_files(const std::vector<test::TestLayer>& layers) {
    test::FakeRegistry source;
    (void)source.add_image("v1", layers);
    const sys::TempDir top("kmm-test-");
    const std::string to = "oci:" + top.path() + "/changed:v1";
    const auto kernel = [](registry::PullRequest& request) {
        request.all_kernels = false;
        request.kernels = {test::k_kernel};
    };
    const auto done = test::rewrite(source.reference(), to, [&](auto& request) { kernel(request.source); });
    REQUIRE_MESSAGE(done.code() == "ok", (done.error ? done.error->message() : ""));
    const auto pulled = test::pull_from(source, [&](registry::PullRequest& request) {
        kernel(request);
        request.reference = to;
    });
    REQUIRE_MESSAGE(!pulled.error, pulled.message());
    return pulled.files;
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("rewrite: a hard link to a file elsewhere in the image is a file of its own") {
    const std::string first = "opt/lib/modules/6.1.0-1-other/extra/a.ko", twin = test::k_modules + "/extra/a.ko";
    const auto both = test::gzip_layer(test::TarBuilder().file(first, "module").hardlink(twin, first).finish());
    CHECK(rewritten_files({both}) == Files{{twin, "module changed"}});
    const auto newer = test::gzip_layer(test::TarBuilder().file(first, "newer").finish());
    CHECK(rewritten_files({both, newer}) == Files{{twin, "module changed"}});
}

TEST_CASE("rewrite: a symbolic link to a file elsewhere leads to the changed one, also over other links") {
    const std::string link = test::k_modules + "/a.ko", file = "usr/lib/modules/6.1.0-1-other/a.ko";
    const auto layer = test::gzip_layer(test::TarBuilder()
                                            .symlink("lib", "usr/lib")
                                            .file(file, "module")
                                            .symlink(link, "/lib/modules/6.1.0-1-other/a.ko")
                                            .symlink(test::k_modules + "/b.ko", "/" + file)
                                            .finish());
    CHECK(rewritten_files({layer}) == Files{{link, "module changed"}, {test::k_modules + "/b.ko", "module changed"}});
}

}
