// SPDX-License-Identifier: Apache-2.0
// Which images of an index are rewritten.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "unit/registry/rewrite_fixture.hpp"

using namespace kmm;

TEST_SUITE("registry::unit") {

TEST_CASE("rewrite: of the variants that serve a platform only the named one is changed") {
    test::FakeRegistry source;
    const std::string type = "application/vnd.oci.image.manifest.v1+json";
    std::string entries;
    for (const std::string variant : {"v6", "v7"}) {
        const std::string image = source.image_manifest({test::gzip_layer(test::tar_with(variant))}, "arm");
        (void)source.add_manifest(variant, type, image);
        entries += (entries.empty() ? "" : ",") +
                   test::descriptor(type, image,
                                    R"(,"platform":{"os":"linux","architecture":"arm","variant":")" + variant + "\"}");
    }
    (void)source.add_manifest(
        "v1", "application/vnd.oci.image.index.v1+json",
        R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[)" + entries + "]}");
    for (const auto& [variant, files] : {std::pair("v7", 1U), std::pair("v6", 1U), std::pair("", 2U)}) {
        test::Destination to;
        const auto done = test::rewrite(source.reference(), to.registry.reference(), [&](auto& request) {
            request.platform = image::Platform{"linux", "arm", variant};
        });
        REQUIRE(done.code() == "ok");
        CHECK(done.result.files.size() == files);
    }
}

}
