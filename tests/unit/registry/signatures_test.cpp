// SPDX-License-Identifier: Apache-2.0
// Signed images in a registry that misbehaves. What is accepted and what is not: tests/e2e/test_worker_trust.py and
// tests/unit/trust.
#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>

#include "base/text.hpp"
#include "registry/client/request.hpp"
#include "registry/pull/puller.hpp"
#include "trust/signature.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

class SigningKey {
public:
    SigningKey() : key_(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), &EVP_PKEY_free) {}

    [[nodiscard]] trust::Requirements required() const {
        const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), &BIO_free);
        REQUIRE(PEM_write_bio_PUBKEY(text.get(), key_.get()) == 1);
        char* bytes = nullptr;
        const long size = BIO_get_mem_data(text.get(), &bytes);
        return trust::signed_with(
            {trust::PublicKey(std::string_view(bytes, static_cast<std::size_t>(size)), "key.pub")});
    }

    [[nodiscard]] std::string sign(const std::string& message) const {
        const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
        std::string signature(256, '\0');
        std::size_t size = signature.size();
        const auto* data = reinterpret_cast<const unsigned char*>(message.data());  // NOLINT: bytes of a text
        REQUIRE(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1);
        REQUIRE(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, data,
                               message.size()) == 1);  // NOLINT
        signature.resize(size);
        return signature;
    }

private:
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
};

std::string signature_tag_of(const std::string& digest) { return trust::signature_tag(*image::parse_digest(digest)); }

/// Puts `count` signatures of `digest` beside it; all but the last are of another image.
void attach(FakeRegistry& registry, const SigningKey& key, const std::string& digest, std::size_t count = 1,
            const std::string& padding = {}) {
    std::string layers;
    for (std::size_t i = 1; i <= count; ++i) {
        const std::string named = i == count ? digest : "sha256:" + std::string(64, '0');
        const std::string payload = R"({"critical":{"identity":{"docker-reference":")" + registry.reference("") +
                                    R"("},"image":{"docker-manifest-digest":")" + named +
                                    R"("},"type":"cosign container image signature"},"optional":{"number":)" +
                                    std::to_string(i) + R"(,"padding":")" + padding + "\"}}";
        static_cast<void>(registry.add_blob(payload));
        layers += (layers.empty() ? "" : ",") + descriptor("application/vnd.dev.cosign.simplesigning.v1+json", payload,
                                                           R"(,"annotations":{"dev.cosignproject.cosign/signature":")" +
                                                               base::to_base64(key.sign(payload)) + "\"}");
    }
    static_cast<void>(registry.add_blob("{}"));
    const std::string manifest =
        R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":)" +
        descriptor("application/vnd.oci.image.config.v1+json", "{}") + R"(,"layers":[)" + layers + "]}";
    static_cast<void>(
        registry.add_manifest(signature_tag_of(digest), "application/vnd.oci.image.manifest.v1+json", manifest));
}

std::string push(FakeRegistry& registry) {
    TarBuilder tar;
    tar.file(k_modules + "/a.ko", "module");
    return registry.add_image("v1", {gzip_layer(tar.finish())});
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("signed image: the signature is asked for before any layer, and only where one is required") {
    FakeRegistry registry;
    const SigningKey key;
    const std::string digest = push(registry);
    std::vector<std::string> asked;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        asked.push_back(request.target);
        return std::nullopt;
    };
    CHECK(pull_from(registry).code() == "ok");
    CHECK(std::none_of(asked.begin(), asked.end(), [](const std::string& path) { return path.ends_with(".sig"); }));
    asked.clear();
    const Outcome refused =
        pull_from(registry, [&](registry::PullRequest& request) { request.requirements = key.required(); });
    CHECK(refused.code() == "image-unsigned");
    CHECK(refused.exit() == Exit::integrity);
    CHECK(refused.detail("key") == "key.pub");
    CHECK(std::any_of(asked.begin(), asked.end(), [&](const std::string& path) {
        return path.ends_with("/manifests/" + signature_tag_of(digest));
    }));
    CHECK(std::count_if(asked.begin(), asked.end(), [](const std::string& path) {
              return path.find("/blobs/") != std::string::npos;
          }) == 1);  // its configuration
    attach(registry, key, digest, 3);
    CHECK(pull_from(registry, [&](registry::PullRequest& request) { request.requirements = key.required(); }).code() ==
          "ok");
    const Outcome other =
        pull_from(registry, [&](registry::PullRequest& request) { request.requirements = SigningKey().required(); });
    CHECK(other.code() == "signature-rejected");
    CHECK(other.message() == "expected one accepted signature, found 3 that are not");
    CHECK(other.detail("signature 3") == "it was not made with the key, or what was signed has changed");
}

TEST_CASE("signed image: a reference by a SHA-512 digest finds signatures under either digest") {
    for (const auto algorithm : {image::DigestAlgorithm::sha256, image::DigestAlgorithm::sha512}) {
        FakeRegistry registry;
        const SigningKey key;
        TarBuilder tar;
        tar.file(k_modules + "/a.ko", "module");
        const std::string manifest = registry.image_manifest({gzip_layer(tar.finish())});
        const std::string asked = registry::digest_of(manifest, image::DigestAlgorithm::sha512).to_string();
        static_cast<void>(registry.add_manifest(asked, std::string(image::k_oci_manifest), manifest));
        const auto pull = [&] {
            return pull_from(registry, [&](registry::PullRequest& request) {
                request.reference = registry.reference("@" + asked);
                request.requirements = key.required();
            });
        };
        CHECK(pull().code() == "image-unsigned");
        attach(registry, key, registry::digest_of(manifest, algorithm).to_string());
        CHECK_MESSAGE(pull().code() == "ok", image::to_string(algorithm));
    }
}

TEST_CASE("signed image: a signature in a form that is not read is not called none") {
    const std::string k_index = "application/vnd.oci.image.index.v1+json";
    const auto list_of = [](const std::string& type) {
        return R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[)" +
               descriptor("application/vnd.oci.image.manifest.v1+json", "bundle",
                          R"(,"artifactType":")" + type + "\"") +
               "]}";
    };
    const std::string bundle = "application/vnd.dev.sigstore.bundle.v0.3+json";
    FakeRegistry registry;
    const SigningKey key;
    const std::string digest = push(registry);
    std::string listed;  // by the registry itself
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (listed.empty() || request.target.find("/referrers/" + digest) == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply;
        reply.body = listed;
        return reply;
    };
    const auto outcome = [&] {
        return pull_from(registry, [&](registry::PullRequest& request) { request.requirements = key.required(); });
    };
    SUBCASE("listed by the registry") { listed = list_of(bundle); }
    SUBCASE("listed under a tag") {
        static_cast<void>(registry.add_manifest("sha256-" + digest.substr(7), k_index, list_of(bundle)));
    }
    const Outcome refused = outcome();
    CHECK(refused.code() == "signature-format");
    CHECK(refused.exit() == Exit::integrity);
    CHECK(refused.detail("bundle") == bundle);
    listed = "{";
    attach(registry, key, digest);
    CHECK(outcome().code() == "ok");
}

TEST_CASE("signed image: other artifacts and lists that cannot be read are no signatures") {
    FakeRegistry registry;
    const SigningKey key;
    const std::string digest = push(registry);
    std::string listed;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find("/referrers/") == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply;
        reply.body = listed;
        return reply;
    };
    for (const char* text :
         {"", "{", "[]", R"({"manifests":3})", R"({"manifests":[{"artifactType":"application/spdx+json"}]})"}) {
        listed = text;
        CHECK(pull_from(registry, [&](registry::PullRequest& request) {
                  request.requirements = key.required();
              }).code() == "image-unsigned");
    }
}

TEST_CASE("signed image: a registry that fails is no unsigned image") {
    FakeRegistry registry;
    const SigningKey key;
    attach(registry, key, push(registry));
    int status = 0;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find(".sig") == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply;
        reply.status = status;
        return reply;
    };
    const auto required = [&](registry::PullRequest& request) { request.requirements = key.required(); };
    for (const auto& [answer, exit] : std::vector<std::pair<int, Exit>>{
             {500, Exit::unavailable}, {403, Exit::no_permission}, {404, Exit::integrity}}) {
        status = answer;
        CHECK(pull_from(registry, required).exit() == exit);
    }
}

TEST_CASE("signed image: limits of what is beside it") {
    FakeRegistry registry;
    const SigningKey key;
    const std::string digest = push(registry);
    const auto with = [&](std::uint64_t layers, std::uint64_t bytes) {
        return pull_from(registry, [&](registry::PullRequest& request) {
            request.requirements = key.required();
            request.limits.layers = layers;
            request.limits.config_bytes = bytes;
        });
    };
    attach(registry, key, digest, 5, std::string(3000, 'x'));
    CHECK(with(5, 4000).code() == "ok");
    CHECK(with(4, 4000).code() == "image-limit");
    CHECK(with(5, 2000).code() == "image-limit");
}

TEST_CASE("signed image: what is damaged beside it is told of, and a sound one counts") {
    FakeRegistry registry;
    const SigningKey key;
    const std::string digest = push(registry);
    const auto required = [&](registry::PullRequest& request) { request.requirements = key.required(); };
    static_cast<void>(
        registry.add_manifest(signature_tag_of(digest), "application/vnd.oci.image.manifest.v1+json", "{}"));
    CHECK(pull_from(registry, required).code() == "signature-rejected");
    attach(registry, key, digest, 2);
    bool first = true;
    registry.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply = registry.usual(request);
        if (reply.body.find("\"number\":1,") == std::string::npos) {
            return std::nullopt;
        }
        first = false;
        reply.body[0] = 'x';
        return reply;
    };
    CHECK(pull_from(registry, required).code() == "ok");
    CHECK_FALSE(first);
}

}
