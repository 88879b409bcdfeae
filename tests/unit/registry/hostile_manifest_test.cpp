// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes and configurations: rows M01 and M10 to M24 of docs/hostile-contents.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "image/manifest.hpp"
#include "registry/client/request.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

const std::string k_manifest_type(image::k_oci_manifest);
const std::string k_index_type(image::k_oci_index);

TestLayer sound_layer() { return gzip_layer(TarBuilder().file(k_modules + "/good.ko", "good").finish()); }

/// `text` with the first `from` replaced.
std::string changed(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

/// Pushes a good image whose manifest was changed.
Outcome pull_changed(const std::string& from, const std::string& to) {
    FakeRegistry registry;
    registry.add_manifest("v1", k_manifest_type, changed(registry.image_manifest({sound_layer()}), from, to));
    return pull_from(registry);
}

Outcome pull_manifest(const std::string& bytes, const std::string& type = k_manifest_type) {
    FakeRegistry registry;
    registry.add_manifest("v1", type, bytes);
    return pull_from(registry);
}

std::string index_of(const std::string& entries) {
    return R"({"schemaVersion":2,"mediaType":")" + k_index_type + R"(","manifests":[)" + entries + "]}";
}

std::string platform(const std::string& architecture, const std::string& variant = {}) {
    return R"(,"platform":{"os":"linux","architecture":")" + architecture + "\"" +
           (variant.empty() ? "" : R"(,"variant":")" + variant + "\"") + "}";
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("M01 another manifest than the digest asked for") {
    FakeRegistry registry;
    const std::string digest = registry.add_image("v1", {sound_layer()});
    const std::string manifest = registry.image_manifest({sound_layer()});
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find("/manifests/") == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply;
        reply.headers.emplace_back("Content-Type", k_manifest_type);
        reply.body = manifest + " ";
        return reply;
    };
    const Outcome outcome =
        pull_from(registry, [&](auto& request) { request.reference = registry.reference("@" + digest); });
    CHECK(outcome.exit() == Exit::integrity);
    CHECK(outcome.code() == "digest-mismatch");
    CHECK(outcome.detail("expected") == digest);
    CHECK(outcome.detail("found") == sha256(manifest + " "));
    CHECK(registry.server().count("/manifests/") == 1);
}

TEST_CASE("M10 a manifest of exactly the limit and one byte more") {
    FakeRegistry registry;
    std::string manifest = registry.image_manifest({sound_layer()});
    const std::size_t limit = 4U << 20U;
    manifest.insert(1, limit - manifest.size(), ' ');
    REQUIRE(manifest.size() == limit);
    registry.add_manifest("v1", k_manifest_type, manifest);
    const Outcome exact = pull_from(registry);
    CHECK_MESSAGE(!exact.error, exact.message());
    registry.add_manifest("v1", k_manifest_type, manifest + " ");
    const Outcome over = pull_from(registry);
    CHECK(over.code() == "image-limit");
    CHECK(over.error->hint().starts_with("if the image is trustworthy: kmm-worker takes it with --limit "));
    CHECK(over.exit() == Exit::unsafe);
    CHECK(over.error->hint().find("--limit manifest_bytes=") != std::string::npos);
}

TEST_CASE("M11 a manifest that is not clean JSON") {
    const std::vector<std::pair<const char*, std::string>> rows{
        {"empty", ""},
        {"not JSON", "<html>"},
        {"cut", R"({"schemaVersion":2,)"},
        {"trailing garbage", R"({"schemaVersion":2,"config":{},"layers":[]} x)"},
        {"duplicate keys", R"({"schemaVersion":2,"layers":[],"layers":[]})"},
        {"NaN", R"({"schemaVersion":NaN})"},
        {"deep", std::string(1000, '[') + std::string(1000, ']')},
        {"lone surrogate", R"({"schemaVersion":2,"x":"\ud800"})"},
        {"NUL", std::string("{\"schemaVersion\":2,\"x\":\"a\0b\"}", 28)},
        {"a byte order mark", "\xef\xbb\xbf{\"schemaVersion\":2}"},
        {"not a mapping", "[]"},
        {"no members", R"({"schemaVersion":2})"},
    };
    for (const auto& [what, bytes] : rows) {
        CAPTURE(what);
        const Outcome outcome = pull_manifest(bytes);
        CAPTURE(outcome.message());
        CHECK(outcome.code() == "bad-manifest");
        CHECK(outcome.exit() == Exit::data);
    }
    FakeRegistry registry;
    CHECK(pull_manifest("\xef\xbb\xbf" + registry.image_manifest({sound_layer()})).message().find("byte order mark") !=
          std::string::npos);
}

TEST_CASE("M12 impossible sizes") {
    for (const char* size : {"-1", "9223372036854775808", "18446744073709551616", "1e99", "1.5", "\"10\"", "null"}) {
        CAPTURE(size);
        const Outcome outcome = pull_changed("\"size\":", std::string("\"size\":") + size + ",\"was\":");
        CAPTURE(outcome.message());
        CHECK(outcome.code() == "bad-manifest");
    }
    CHECK(pull_changed("\"size\":", "\"was\":").code() == "bad-manifest");
}

TEST_CASE("M13 digests that are none") {
    const std::string hex(64, 'a');
    for (const std::string& digest :
         {std::string("sha256:../../x"), "sha256:" + std::string(64, 'A'), "sha256:" + hex.substr(1), "md5:" + hex,
          std::string(), "sha256:" + hex + "a", "SHA256:" + hex, "sha512:" + hex, hex}) {
        CAPTURE(digest);
        FakeRegistry registry;
        const TestLayer layer = sound_layer();
        registry.add_manifest("v1", k_manifest_type,
                              changed(registry.image_manifest({layer}), sha256(layer.bytes), digest));
        const Outcome outcome = pull_from(registry);
        CHECK(outcome.code() == "bad-manifest");
        CHECK(outcome.exit() == Exit::data);
        CHECK(registry.server().count("/blobs/") == 0);
    }
}

TEST_CASE("M14 a document that is two things") {
    FakeRegistry registry;
    const std::string manifest = registry.image_manifest({sound_layer()});
    CHECK(pull_manifest(manifest, k_index_type).code() == "bad-manifest");
    CHECK(pull_manifest(changed(manifest, "\"layers\":", "\"manifests\":[],\"layers\":")).code() == "bad-manifest");
    CHECK(pull_manifest(changed(manifest, k_manifest_type, k_index_type), k_index_type).code() == "bad-manifest");
    CHECK(pull_manifest(index_of(""), k_manifest_type).code() == "bad-manifest");
    for (const std::string of_schema_1 : {R"("fsLayers":[])", R"("history":[])", R"("FsLayers":null)"}) {
        CAPTURE(of_schema_1);
        CHECK(pull_manifest(changed(manifest, "\"layers\":", of_schema_1 + ",\"layers\":")).code() == "bad-manifest");
        CHECK(pull_manifest(changed(index_of(""), "\"manifests\":", of_schema_1 + ",\"manifests\":"), k_index_type)
                  .code() == "bad-manifest");
    }
    CHECK(pull_manifest(changed(index_of(""), k_index_type, k_manifest_type), k_manifest_type).code() ==
          "bad-manifest");
}

TEST_CASE("M14 a member in another case, which Go's readers take for the one in lower case") {
    const std::vector<std::pair<std::string, std::string>> rows{
        {R"("layers":)", R"("Layers":[],"layers":)"},     {R"("layers":)", R"("Layers":)"},
        {R"("layers":)", R"("Manifests":[],"layers":)"},  {R"("digest":)", R"("Digest":"x","digest":)"},
        {R"("size":)", R"("Si\u007ae":1,"sIze":1,"size":)"}, {R"("config":)", R"("CONFIG":{},"config":)"},
        {R"("layers":)", R"("layer\u017f":[],"layers":)"},
    };
    for (const auto& [from, to] : rows) {
        CAPTURE(to);
        const Outcome outcome = pull_changed(from, to);
        CHECK(outcome.code() == "bad-manifest");
        CHECK(outcome.exit() == Exit::data);
    }
    CHECK(pull_changed(R"("layers":)", R"("Layers":[],"layers":)")
              .message()
              .find(R"(manifest: expected the member layers, found "Layers")") != std::string::npos);
    CHECK(pull_changed(R"("layers":)", R"("Annotations":{},"layers\u0000":[],"layers":)").code() == "ok");
}

TEST_CASE("M15 the obsolete Docker schema 1") {
    const Outcome by_version = pull_manifest(R"({"schemaVersion":1,"fsLayers":[]})");
    CHECK(by_version.code() == "unsupported-image");
    CHECK(by_version.error->hint().find("rebuild") != std::string::npos);
    CHECK(pull_manifest(R"({"schemaVersion":1})", "application/vnd.docker.distribution.manifest.v1+prettyjws").code() ==
          "unsupported-image");
}

TEST_CASE("a digest that is announced in capitals is the same digest") {
    FakeRegistry registry;
    const std::string digest = registry.add_image("v1", {sound_layer()});
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply = registry.usual(request);
        std::string hex = digest.substr(7);
        std::transform(hex.begin(), hex.end(), hex.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        reply.headers.emplace_back("Docker-Content-Digest", "sha256:" + hex);
        return reply;
    };
    const Outcome outcome = pull_from(registry);
    CHECK(outcome.code() == "ok");
    CHECK(outcome.result.warnings.empty());
}

TEST_CASE("M16 parameters of the content type are ignored") {
    FakeRegistry registry;
    registry.add_manifest("v1", k_manifest_type + "; charset=utf-8", registry.image_manifest({sound_layer()}));
    const Outcome outcome = pull_from(registry);
    CHECK_MESSAGE(!outcome.error, outcome.message());
}

TEST_CASE("M16 a content coding that was not asked for is the doing of a proxy") {
    FakeRegistry registry;
    registry.add_image("v1", {sound_layer()});
    std::string body;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply = registry.usual(request);
        if (request.target.find("/manifests/") == std::string::npos) {
            return std::nullopt;
        }
        reply.headers.emplace_back("Content-Encoding", "gzip");
        reply.body = body.empty() ? reply.body : body;
        return reply;
    };
    CHECK(pull_from(registry).code() == "ok");  // only said
    body = gzip_layer("{}").bytes;
    const Outcome coded = pull_from(registry);
    CHECK(coded.code() == "registry-error");
    CHECK_MESSAGE(coded.message().find("\"gzip\"") != std::string::npos, coded.message());
}

TEST_CASE("blobs in a content coding, and pages in the place of manifests, are not called damaged images") {
    FakeRegistry registry;
    registry.add_image("v1", {sound_layer()});
    std::string part = "/blobs/", coding = "gzip", body;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find(part) == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply = registry.usual(request);
        if (!coding.empty()) {
            reply.headers.emplace_back("Content-Encoding", coding);
        }
        reply.body = body;
        return reply;
    };
    for (const std::string& bytes : {std::string("short"), std::string(5000, 'l')}) {
        body = bytes;
        const Outcome coded = pull_from(registry);
        CHECK(coded.code() == "registry-error");
        CHECK_MESSAGE(coded.message().find("the blob as it is stored") != std::string::npos, coded.message());
    }
    coding = "identity";
    CHECK(pull_from(registry).code() == "size-mismatch");
    part = "/manifests/";
    for (const char* page : {"<html>login</html>", "", " \n<!DOCTYPE html>"}) {
        body = page;
        const Outcome other = pull_from(registry);
        CHECK_MESSAGE(other.code() == "bad-manifest", page);
        REQUIRE(other.error);
        CHECK_MESSAGE(other.error->hint().find("a proxy, a login page") != std::string::npos, other.error->hint());
        CHECK_MESSAGE(other.message().find("expected a manifest, found ") != std::string::npos, other.message());
    }
}

TEST_CASE("M17 nested indexes") {
    FakeRegistry registry;
    const std::string manifest = registry.image_manifest({sound_layer()});
    const std::string digest = registry.add_manifest("m", k_manifest_type, manifest);
    const std::string one = index_of(descriptor(k_manifest_type, manifest, platform("amd64")));
    const std::string two = index_of(descriptor(k_index_type, one));
    const std::string three = index_of(descriptor(k_index_type, two));
    for (const std::string& text : {one, two, three}) {
        registry.add_manifest("v1", k_index_type, text);
    }
    const Outcome deep = pull_from(registry);
    CHECK(deep.code() == "image-limit");
    CHECK(deep.error->hint().find("--limit index_depth=") != std::string::npos);
    registry.add_manifest("v1", k_index_type, two);
    const Outcome fine = pull_from(registry);
    REQUIRE_MESSAGE(!fine.error, fine.message());
    CHECK(fine.result.digest == digest);
    CHECK(fine.result.index_digest == sha256(two));
    std::string many;
    for (int i = 0; i < 1001; ++i) {
        many += (i == 0 ? "" : ",") + descriptor(k_manifest_type, manifest, platform("s390x"));
    }
    registry.add_manifest("v1", k_index_type, index_of(many));
    CHECK(pull_from(registry).code() == "image-limit");
}

TEST_CASE("M18 the platform in an index") {
    FakeRegistry registry;
    const std::string amd = registry.image_manifest({sound_layer()});
    const std::string arm7 = registry.image_manifest({sound_layer()}, "arm");
    const std::string second = registry.image_manifest(
        {gzip_layer(TarBuilder().file(k_modules + "/second.ko", "2").finish())});
    for (const std::string& text : {amd, arm7, second}) {
        registry.add_manifest("x", k_manifest_type, text);
    }
    registry.add_manifest("v1", k_index_type,
                          index_of(descriptor(k_manifest_type, arm7, platform("arm", "v7")) + "," +
                                   descriptor(k_manifest_type, amd, platform("amd64")) + "," +
                                   descriptor(k_manifest_type, second, platform("amd64"))));
    const Outcome first = pull_from(registry);
    REQUIRE_MESSAGE(!first.error, first.message());
    CHECK(first.files.contains(k_modules + "/good.ko"));
    CHECK(first.result.digest == sha256(amd));
    const Outcome none = pull_from(registry, [](auto& request) { request.architecture = "s390x"; });
    CHECK(none.code() == "no-platform");
    CHECK(none.exit() == Exit::not_found);
    CHECK(none.message().find("linux/amd64, linux/arm/v7") != std::string::npos);
    const auto arm = [&](const char* variant) {
        return pull_from(registry, [&](auto& request) {
            request.architecture = "arm";
            request.variant = variant;
        });
    };
    CHECK(arm("v6").code() == "no-platform");
    CHECK(arm("v7").code() == "ok");
    CHECK(arm("v8").code() == "ok");
    registry.add_manifest("v1", k_index_type,
                          index_of(descriptor(k_manifest_type, amd, platform("arm", "v6")) + "," +
                                   descriptor(k_manifest_type, arm7, platform("arm", "v7"))));
    CHECK(arm("").result.digest == sha256(arm7));
}

TEST_CASE("M18 an entry that needs features of a runtime is taken where there is no other") {
    FakeRegistry registry;
    const std::string plain = registry.image_manifest({sound_layer()});
    TestLayer blob = sound_layer();
    blob.media_type = "application/vnd.oci.image.layer.nydus.blob.v1";
    const std::string nydus = registry.image_manifest({blob});
    for (const std::string& text : {plain, nydus}) {
        registry.add_manifest("x", k_manifest_type, text);
    }
    const std::string features =
        R"(,"platform":{"os":"linux","architecture":"amd64","os.features":["nydus.remoteimage.v1"]})";
    registry.add_manifest("v1", k_index_type,
                          index_of(descriptor(k_manifest_type, nydus, features) + "," +
                                   descriptor(k_manifest_type, plain, platform("amd64"))));
    const Outcome both = pull_from(registry);
    CHECK_MESSAGE(both.result.digest == sha256(plain), both.message());
    registry.add_manifest("v1", k_index_type, index_of(descriptor(k_manifest_type, nydus, features)));
    CHECK(pull_from(registry).code() == "unsupported-image");
    registry.add_manifest("v1", k_index_type, index_of(descriptor(k_manifest_type, plain, features)));
    CHECK(pull_from(registry).code() == "ok");
}

TEST_CASE("M18 an index whose entry for us cannot be used says so") {
    FakeRegistry registry;
    registry.add_manifest("v1", k_index_type, index_of(descriptor(k_manifest_type, "gone", platform("amd64"))));
    const Outcome gone = pull_from(registry);
    CHECK(gone.code() == "image-not-found");
    CHECK(gone.message().find("the index and not manifests/" + sha256("gone")) != std::string::npos);
    registry.add_manifest("v1", k_index_type, index_of(descriptor("application/vnd.example", "x", platform("amd64"))));
    const Outcome unknown = pull_from(registry);
    CHECK(unknown.code() == "unsupported-image");
    CHECK(unknown.exit() == Exit::data);
    CHECK(unknown.message().find("application/vnd.example") != std::string::npos);
}

TEST_CASE("M19 an index entry without a platform") {
    FakeRegistry registry;
    const std::string manifest = registry.image_manifest({sound_layer()});
    registry.add_manifest("x", k_manifest_type, manifest);
    registry.add_manifest("v1", k_index_type, index_of(descriptor(k_manifest_type, manifest)));
    CHECK(pull_from(registry).code() == "ok");
    CHECK(pull_from(registry, [](auto& request) { request.architecture = "arm64"; }).code() == "no-platform");
}

TEST_CASE("M19 artifacts without a platform stand beside the image") {
    FakeRegistry registry;
    const std::string image = registry.image_manifest({sound_layer()});
    registry.add_manifest("x", k_manifest_type, image);
    const std::string empty_config = descriptor("application/vnd.oci.empty.v1+json", "{}");
    const std::string artifact = R"({"schemaVersion":2,"mediaType":")" + std::string(k_manifest_type) +
                                 R"(","artifactType":"application/spdx+json","config":)" + empty_config +
                                 R"(,"layers":[)" + empty_config + "]}";
    registry.add_manifest("y", k_manifest_type, artifact);
    const std::string beside = descriptor(k_manifest_type, artifact);
    for (const std::string& entry :
         {descriptor(k_manifest_type, image), descriptor(k_manifest_type, image, platform("amd64"))}) {
        registry.add_manifest("v1", k_index_type, index_of(beside + "," + entry));
        const Outcome outcome = pull_from(registry);
        CHECK_MESSAGE(outcome.code() == "ok", outcome.message());
        CHECK(pull_from(registry, [](auto& request) { request.architecture = "arm64"; }).code() == "no-platform");
    }
    registry.add_manifest("v1", k_index_type, index_of(beside));
    const Outcome alone = pull_from(registry);
    CHECK(alone.code() == "unsupported-image");
    CHECK_MESSAGE(alone.message().find("application/vnd.oci.empty.v1+json") != std::string::npos, alone.message());
}

TEST_CASE("M20 a configuration for another platform") {
    FakeRegistry registry;
    registry.add_image("v1", {sound_layer()}, "arm64");
    const Outcome outcome = pull_from(registry);
    CHECK(outcome.code() == "platform-mismatch");
    CHECK(outcome.error->hint().ends_with("kmm-worker takes it with --allow-platform-mismatch"));
    CHECK(outcome.exit() == Exit::data);
    const std::string manifest = registry.image_manifest({sound_layer()}, "arm64");
    registry.add_manifest("v1", k_index_type, index_of(descriptor(k_manifest_type, manifest, platform("amd64"))));
    CHECK(pull_from(registry).code() == "platform-mismatch");
    // --allow-platform-mismatch
    const auto allow = [](auto& request) { request.other_platform = registry::OtherPlatform::warn; };
    for (const char* tag : {"v1", "plain"}) {
        CAPTURE(tag);
        registry.add_image("plain", {sound_layer()}, "arm64");
        const Outcome allowed = pull_from(registry, allow);
        CHECK(allowed.code() == "ok");
        CHECK(allowed.warned("platform-mismatch: expected an image for linux/amd64, took one for linux/arm64"));
    }
    registry.add_image("v1", {sound_layer()}, "");  // as crane append makes it of files alone
    CHECK(pull_from(registry).code() == "ok");
}

TEST_CASE("M21 no layers, empty layers, too many layers") {
    CHECK(pull_layers({}).code() == "bad-manifest");
    const TestLayer nothing = gzip_layer(TarBuilder().finish());
    CHECK(pull_layers({nothing, sound_layer(), plain_layer("")}).code() == "ok");
    CHECK(pull_layers(std::vector<TestLayer>(129, nothing)).code() == "image-limit");
    FakeRegistry registry;
    const TestLayer layer = sound_layer();
    registry.add_manifest("v1", k_manifest_type, changed(registry.image_manifest({layer}), "]}", "," +
                                                 descriptor(layer.media_type, layer.bytes) + "]}"));
    CHECK(pull_from(registry).code() == "bad-manifest");
}

TEST_CASE("M22 layers that are encrypted or unknown; artifacts") {
    for (const char* type : {"application/vnd.oci.image.layer.v1.tar+gzip+encrypted", "application/octet-stream"}) {
        CAPTURE(type);
        FakeRegistry registry;
        TestLayer layer = sound_layer();
        layer.media_type = type;
        registry.add_image("v1", {layer});
        const Outcome outcome = pull_from(registry);
        CHECK(outcome.code() == "unsupported-image");
        CHECK(outcome.exit() == Exit::data);
        CHECK(registry.server().count(sha256(layer.bytes)) == 0);
    }
    const Outcome artifact = pull_changed(std::string(image::k_oci_config), "application/vnd.cncf.helm.config.v1+json");
    CHECK(artifact.code() == "unsupported-image");
}

TEST_CASE("M23 foreign layers with addresses of their own") {
    for (const char* type :
         {"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
          "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"}) {
        CAPTURE(type);
        FakeRegistry registry;
        TestLayer layer = sound_layer();
        layer.media_type = type;
        registry.add_manifest("v1", k_manifest_type,
                              changed(registry.image_manifest({layer}), "\"layers\":[{",
                                      R"("layers":[{"urls":["http://127.0.0.1:1/latest"],)"));
        const Outcome outcome = pull_from(registry);
        CHECK(outcome.code() == "unsupported-image");
        CHECK(outcome.exit() == Exit::data);
        CHECK(registry.server().count(sha256(layer.bytes)) == 0);
        REQUIRE(outcome.error->context().size() == 1);
        CHECK(outcome.error->context().front() == "image " + registry.reference(":v1"));
    }
}

TEST_CASE("M24 data inside a descriptor is not trusted") {
    const Outcome outcome = pull_changed("\"layers\":[{", R"("layers":[{"data":"ZXZpbA==",)");
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/good.ko") == "good");
}

}
