// SPDX-License-Identifier: Apache-2.0
// Which images of an index are rewritten, and uploads that are lost.
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

TEST_CASE("push: an upload that the registry does not know is begun again, and named if that does not help") {
    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(test::tar_with("old"))});
    for (const int losses : {1, 1000}) {
        CAPTURE(losses);
        test::Destination to;
        int left = losses;
        to.before = [&](const test::FakeRequest& request) -> std::optional<test::FakeReply> {
            if (request.method != "PUT" || request.target.find("digest=") == std::string::npos || left-- <= 0)
                return std::nullopt;
            test::FakeReply reply;
            reply.status = 404;
            return reply;
        };
        const auto outcome = test::rewrite(source.reference(), to.registry.reference());
        CHECK(outcome.code() == (losses == 1 ? "ok" : "registry-error"));
        CHECK(to.manifests.empty() == (losses != 1));
        if (losses != 1) CHECK(outcome.error->message().ends_with("does not know the upload that it has opened"));
    }
}

}
