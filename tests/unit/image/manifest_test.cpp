// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "image/manifest.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

value::Node json(const std::string& text) {
    Diagnostics faults;
    auto documents = value::read_json(text, "test", faults);
    REQUIRE(faults.empty());
    REQUIRE(documents.size() == 1);
    return documents.front().root;
}

const std::string k_digest = "sha256:" + std::string(64, 'a');

std::string descriptor(const std::string& type) {
    return R"({"mediaType":")" + type + R"(","digest":")" + k_digest + R"(","size":7})";
}

template <typename Body>
std::string message_of(Body&& body) {
    try {
        static_cast<void>(body());
    } catch (const Error& error) {
        return error.message();
    }
    return "no error";
}

}  // namespace

TEST_SUITE("image::unit") {

TEST_CASE("a manifest is decoded") {
    const image::Manifest manifest = image::decode_manifest(
        json(R"({"schemaVersion":2,"config":)" + descriptor(std::string(image::k_docker_config)) + R"(,"layers":[)" +
             descriptor("application/vnd.docker.image.rootfs.diff.tar.gzip") + "]}"));
    REQUIRE(manifest.layers.size() == 1);
    CHECK(manifest.layers[0].size == 7);
    CHECK(manifest.layers[0].digest.to_string() == k_digest);
    CHECK(image::layer_compression(manifest.layers[0]) == image::Compression::gzip);
}

TEST_CASE("a fault of a manifest names the member") {
    const auto manifest = [](const std::string& text) {
        return message_of([&] { return image::decode_manifest(json(text)); });
    };
    CHECK(manifest("{}") == "manifest: expected the member config, found none");
    CHECK(manifest(R"({"config":[]})") == "config: expected a mapping, found a list");
    const std::string config = R"({"config":)" + descriptor(std::string(image::k_oci_config));
    CHECK(manifest(config + R"(,"layers":{}})") == "manifest: layers: expected a list, found a mapping");
    CHECK(manifest(config + R"(,"layers":[{"mediaType":"x"}]})") ==
          "layers[0]: expected the member digest, found none");
    CHECK(manifest(config + R"(,"layers":[{"mediaType":1}]})") ==
          "layers[0]: mediaType: expected a string, found an integer");
    const auto index = [](const std::string& text) {
        return message_of([&] { return image::decode_index(json(text)); });
    };
    CHECK(index(R"({"manifests":[{"mediaType":"x","digest":")" + k_digest + R"(","size":1,"platform":[]}]})") ==
          "manifests[0].platform: expected a mapping, found a list");
    const auto platform = [&](const std::string& features) {
        return R"({"manifests":[{"mediaType":"x","digest":")" + k_digest + R"(","size":1,"platform":{)" + features +
               "}}]}";
    };
    CHECK(index(platform(R"("os.features":"x")")) ==
          "manifests[0].platform: os.features: expected a list, found a string");
    CHECK(index(platform(R"("OS.Features":["x"])")).find("expected the member os.features") != std::string::npos);
    CHECK(image::decode_index(json(platform(R"("os.features":["x"])"))).manifests.front().needs_features);
    CHECK_FALSE(image::decode_index(json(platform(R"("os.features":[])"))).manifests.front().needs_features);
    CHECK_FALSE(image::decode_index(json(platform(R"("os.features":null)"))).manifests.front().needs_features);
}

TEST_CASE("a configuration is decoded") {
    const image::ImageConfig config = image::decode_config(json(
        R"({"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[")" + k_digest + R"("]}})"));
    CHECK(config.platform == image::Platform{"linux", "amd64", ""});
    CHECK(config.diff_ids.size() == 1);
    const auto fault = [](const std::string& text) {
        return message_of([&] { return image::decode_config(json(text)); });
    };
    CHECK(fault("[]") == "image configuration: expected a mapping, found a list");
    CHECK(fault("{}") == "image configuration: expected the member rootfs, found none");
    CHECK(fault(R"({"rootfs":{"type":"x"}})") == "rootfs.type: expected \"layers\"");
    CHECK(
        fault(R"({"rootfs":{"type":"layers","diff_ids":["x"]}})").starts_with("rootfs.diff_ids[0]: expected sha256:"));
}

TEST_CASE("platforms match however their architecture is spelt") {
    const auto match = [](const image::Platform& offered, const image::Platform& wanted) {
        return image::matches(offered, wanted);
    };
    const image::Platform amd{"linux", "amd64", ""};
    for (const char* name : {"amd64", "x86_64", "x86-64", "X86_64"}) {
        CHECK(match({"linux", name, ""}, amd));
        CHECK(match({"Linux", name, "v1"}, {"linux", "amd64", "v1"}));
        CHECK_FALSE(match({"linux", name, ""}, {"linux", "arm64", ""}));
    }
    CHECK(match({"linux", "x86_64", "v1"}, {"linux", "amd64", "v2"}));  // v1 says nothing
    CHECK_FALSE(match({"linux", "amd64", "v3"}, {"linux", "amd64", "v2"}));
    for (const char* variant : {"", "v8", "8", "V8"}) {
        CHECK(match({"linux", "aarch64", variant}, {"linux", "arm64", "v8"}));
    }
    CHECK(match({"linux", "i386", ""}, {"linux", "386", ""}));
    CHECK(match({"linux", "armhf", ""}, {"linux", "arm", "v7"}));
    CHECK(match({"linux", "arm", "7"}, {"linux", "arm", "v7"}));
    CHECK_FALSE(match({"linux", "armhf", ""}, {"linux", "arm", "v6"}));
    CHECK(match({"linux", "armel", ""}, {"linux", "arm", "v6"}));
    CHECK_FALSE(match({"windows", "x86_64", ""}, amd));
    CHECK_FALSE(match({"linux", "x86", ""}, amd));
}

TEST_CASE("a later variant of a platform includes the earlier ones, and the nearest comes first") {
    struct Row {
        const char* architecture;
        const char* wanted;
        std::vector<std::string> offered;  ///< nearest first
        std::vector<std::string> refused;
    };
    for (const Row& row : std::vector<Row>{
             {"arm", "", {"v7", "v6", "v5", "v8"}, {}},
             {"arm", "v7", {"v7", "", "v6", "v5"}, {"v8"}},
             {"arm", "v6", {"v6", "v5", ""}, {"v7", "v8"}},
             {"arm", "v8", {"v8", "v7", "v6", "v5"}, {"x"}},
             {"arm64", "", {"v8", "v8.2", "v9"}, {"v7x"}},
             {"arm64", "v9", {"v9", "v8.2", "v8"}, {"v9.1"}},
             {"amd64", "", {"", "v2", "v3"}, {}},
             {"amd64", "v3", {"v3", "v2", "v1"}, {"v4", "v2.x", "v-1", "v99999999999"}},
             {"386", "", {"", "v9"}, {}},
             {"s390x", "z14", {"z14", ""}, {"z13", "v1"}},
         }) {
        CAPTURE(row.architecture);
        CAPTURE(row.wanted);
        const image::Platform wanted{"linux", row.architecture, row.wanted};
        int before = -1;
        for (const auto& variant : row.offered) {
            CAPTURE(variant);
            const auto found = image::distance({"linux", row.architecture, variant}, wanted);
            REQUIRE(found);
            CHECK(*found >= before);
            before = *found;
        }
        for (const auto& variant : row.refused) {
            CAPTURE(variant);
            const bool spoken = !std::string(row.wanted).empty();
            CHECK(image::matches({"linux", row.architecture, variant}, wanted) == !spoken);
        }
    }
}

TEST_CASE("what a document is, by header and members") {
    const auto kind = [](const std::string& text, std::string_view header) {
        return image::document_kind(json(text), header);
    };
    const std::string manifest = R"({"schemaVersion":2,"config":{},"layers":[]})";
    CHECK(kind(manifest, image::k_oci_manifest) == image::DocumentKind::manifest);
    CHECK(kind(manifest, "Application/VND.oci.image.manifest.v1+json; charset=utf-8") == image::DocumentKind::manifest);
    CHECK(kind(R"({"schemaVersion":2,"manifests":[]})", image::k_docker_list) == image::DocumentKind::index);
    CHECK(message_of([&] { return kind(manifest, ""); }).find("found none") != std::string::npos);
    CHECK(message_of([&] { return kind(manifest, "text/html; charset=utf-8"); }) ==
          "expected a manifest with a media type of manifests, found the content type \"text/html\"");
    for (const auto& [document, found] : {std::pair{R"({"errors":[{"status":404,"message":"Not Found"}]})",
                                                    "\"404: Not Found\""},
                                          std::pair{R"({"errors":[{"code":"DENIED"}]})", "\"DENIED\""},
                                          std::pair{R"({"errors":["x"]})", "\"\""}}) {
        CAPTURE(document);
        CHECK(message_of([&, text = document] { return kind(text, "application/json"); }) ==
              std::string("expected a manifest, found an error document ") + found);
    }
    for (const char* plain : {"application/json", "text/plain; charset=utf-8", "application/octet-stream",
                              "Binary/Octet-Stream"}) {  // servers of plain files
        CAPTURE(plain);
        CHECK(kind(manifest, plain) == image::DocumentKind::manifest);
        CHECK(kind(R"({"schemaVersion":2,"manifests":[]})", plain) == image::DocumentKind::index);
        CHECK(kind(R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]})",
                   plain) == image::DocumentKind::index);
        CHECK(message_of([&] {
                  return kind(
                      R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","layers":[]})",
                      plain);
              }).find("found layers") != std::string::npos);
        CHECK(message_of([&] {
                  return kind(R"({"schemaVersion":2,"manifests":[],"layers":[]})", plain);
              }).find("found both") != std::string::npos);
        CHECK(message_of([&] { return kind(R"({"schemaVersion":2})", plain); }).find("found none") !=
              std::string::npos);
        CHECK(message_of([&] {
                  return kind(R"({"schemaVersion":2,"mediaType":"text/plain","layers":[]})", plain);
              }).find("text/plain") != std::string::npos);
    }
    CHECK(message_of([&] { return kind("{}", image::k_oci_manifest); }) == "schemaVersion: expected 2");
}

}
