// SPDX-License-Identifier: Apache-2.0
// Mirrors, and the certificates of one registry: rows M61 and M62 of docs/hostile-registries.md.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/text.hpp"
#include "registry/client/credentials.hpp"
#include "registry/client/request.hpp"
#include "registry/local/mirror_files.hpp"
#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

const TestLayer& mirrored_layer() {
    static const TestLayer layer = gzip_layer(TarBuilder().file(k_modules + "/m.ko", "mirrored").finish());
    return layer;
}

/// A registry and its mirror.
struct MirrorScene {
    FakeRegistry origin;
    FakeRegistry mirror;

    MirrorScene() { origin.add_image("v1", {mirrored_layer()}); }

    [[nodiscard]] Outcome pull(const std::string& reference_tail = ":v1", bool blocked = false,
                               const std::function<void(registry::PullRequest&)>& tweak = nullptr) {
        return pull_from(origin, [&](registry::PullRequest& request) {
            request.reference = origin.reference(reference_tail);
            image::MirrorRule rule;
            rule.prefix = origin.host() + "/team";
            rule.blocked = blocked;
            rule.mirrors = {{mirror.host() + "/team", true, image::MirrorUse::all}};
            request.mirrors = {rule};
            if (tweak) {
                tweak(request);
            }
        });
    }
    [[nodiscard]] std::size_t asked_of(FakeRegistry& registry) const { return registry.server().count("/v2/team/"); }
};

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("mirror files are taken together: tags and digests of one source in two of them") {
    const sys::TempDir top("kmm-test-");
    const auto put = [&](const std::string& name, const std::string& text) {
        std::ofstream(top.path() + "/" + name) << text;
        return top.path() + "/" + name;
    };
    const std::string digests = put(
        "idms.yaml", "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: q.io/t, mirrors: [m.io/d]}]}\n");
    const std::string tags = put("itms.yaml",
                                 "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: [{source: q.io/t, mirrors: "
                                 "[m.io/t], mirrorSourcePolicy: NeverContactSource}]}\n");
    const std::string pinned = "q.io/t/x@sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for (const auto& files : {std::vector{digests, tags}, std::vector{tags, digests}}) {
        const auto rules = registry::read_mirror_files(files);
        const auto by_tag = image::endpoints_of(image::parse_reference("q.io/t/x:1"), rules);
        REQUIRE(by_tag.size() == 1);
        CHECK(by_tag[0].reference.to_string() == "m.io/t/x:1");
        CHECK(image::endpoints_of(image::parse_reference(pinned), rules).size() == 1);
    }
    const std::string one = put("a.conf", "[[registry]]\nprefix = 'q.io'\nlocation = 'a.io'\n");
    const std::string other = put("b.conf", "[[registry]]\nprefix = 'q.io'\nlocation = 'b.io'\n");
    CHECK(registry::read_mirror_files({one, one}).size() == 1);
    CHECK_THROWS_AS(static_cast<void>(registry::read_mirror_files({one, other})), Error);
    // The documents of OpenShift say nothing of TLS: they fit any registries.conf. Two of these must not disagree.
    const auto conf = [&](const std::string& name, const std::string& of_registry, const std::string& of_mirror) {
        return put(name, "[[registry]]\nlocation = 'q.io/t'\n" + of_registry +
                             "\n[[registry.mirror]]\nlocation = 'm.io/t'\npull-from-mirror = 'tag-only'\n" + of_mirror);
    };
    const std::string plain = conf("c.conf", "", ""), insecure = conf("d.conf", "insecure = true", ""),
                      insecure_mirror = conf("e.conf", "", "insecure = true");
    for (const auto& files : {std::vector{tags, insecure_mirror}, std::vector{insecure_mirror, tags}}) {
        const auto endpoints =
            image::endpoints_of(image::parse_reference("q.io/t/x:1"), registry::read_mirror_files(files));
        REQUIRE(endpoints.size() == 1);  // asked once, and the source is blocked
        CHECK(endpoints[0].insecure);
    }
    CHECK(registry::read_mirror_files({plain, plain}).at(0).mirrors.size() == 1);
    const auto refused = [](const std::vector<std::string>& files) -> std::string {
        try {
            static_cast<void>(registry::read_mirror_files(files));
        } catch (const Error& error) {
            return error.message();
        }
        return "none";
    };
    const std::string as_before = " for q.io/t as the files before it give, found another";
    CHECK(refused({plain, insecure}) == insecure + ": expected the same insecure" + as_before);
    CHECK(refused({insecure, plain}) == plain + ": expected the same insecure" + as_before);
    CHECK(refused({plain, insecure_mirror}) ==
          insecure_mirror + ": expected the same insecure of the mirror m.io/t" + as_before);
    CHECK(refused({plain, conf("f.conf", "blocked = true", "")}).find("the same blocked") != std::string::npos);
    try {
        static_cast<void>(registry::read_mirror_files({top.path()}));
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.message() == "cannot read " + top.path() + ": Is a directory (EISDIR)");
        CHECK(error.hint() == "--mirror-config takes files: name each one of the directory by itself");
    }
}

TEST_CASE("M62 a mirror that has the image is asked alone; one that has it not is passed over") {
    MirrorScene scene;
    const Outcome without = scene.pull();
    REQUIRE_MESSAGE(!without.error, without.message());
    CHECK(without.warned("mirror-failed: " + scene.mirror.host() + "/team/driver: the registry has no"));
    CHECK(scene.asked_of(scene.origin) == 3);  // manifest, configuration, layer

    MirrorScene full;
    full.mirror.add_image("v1", {mirrored_layer()});
    const Outcome with = full.pull();
    CHECK(with.files.at(k_modules + "/m.ko") == "mirrored");
    CHECK(with.result.warnings.empty());
    CHECK(full.asked_of(full.origin) == 0);
    CHECK(full.asked_of(full.mirror) == 3);
}

TEST_CASE("mirrors: --insecure is about the registry, and about mirrors on this machine, which documents cannot mark") {
    const auto pull = [](const std::string& mirror_host, bool insecure) {
        FakeRegistry origin;
        origin.add_image("v1", {mirrored_layer()});
        FakeRegistry mirror;
        mirror.add_image("v1", {mirrored_layer()});
        const Outcome outcome = pull_from(origin, [&](registry::PullRequest& request) {
            image::MirrorRule rule;
            rule.prefix = origin.host() + "/team";
            rule.mirrors = {
                {mirror_host + mirror.host().substr(mirror.host().find(':')) + "/team", false, image::MirrorUse::all}};
            request.mirrors = {rule};
            request.tls.insecure = insecure;
        });
        CHECK(mirror.server().count("/v2/team/") == (outcome.error || outcome.warned("mirror-failed") ? 0U : 3U));
        return outcome;
    };
    CHECK_FALSE(pull("127.0.0.1", true).warned("mirror-failed"));
    CHECK_FALSE(pull("localhost", true).warned("mirror-failed"));
    CHECK(pull("127.0.0.1", false).error.has_value());
    CHECK(pull("mirror.invalid", true).warned("mirror-failed"));
}

TEST_CASE("M62 wrong bytes of a mirror are refused, and the next one is asked") {
    MirrorScene blob;
    blob.mirror.add_image("v1", {mirrored_layer()});
    blob.mirror.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find(sha256(mirrored_layer().bytes)) == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply = blob.mirror.usual(request);
        reply.body[7] ^= 1;
        return reply;
    };
    const Outcome outcome = blob.pull();
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.files.at(k_modules + "/m.ko") == "mirrored");
    CHECK(outcome.warned("mirror-failed"));
    CHECK(blob.asked_of(blob.origin) == 1);

    MirrorScene manifest;
    const std::string digest = manifest.origin.add_image("v2", {mirrored_layer()});
    manifest.mirror.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        FakeReply reply = manifest.origin.usual(request);
        reply.body += " ";
        return reply;
    };
    CHECK(manifest.pull("@" + digest).code() == "ok");
    const Outcome nobody = manifest.pull("@" + digest, true);
    CHECK(nobody.code() == "digest-mismatch");
    CHECK(nobody.exit() == Exit::integrity);
}

TEST_CASE(
    "M62 whoever has another image of that tag, or none, is not blamed for what the mirror that has it does wrong") {
    MirrorScene scene;
    const TestLayer other = gzip_layer(TarBuilder().file(k_modules + "/other.ko", "other").finish());
    scene.mirror.add_image("v1", {other});
    scene.mirror.intercept = [&](const FakeRequest& request) -> std::optional<FakeReply> {
        if (request.target.find(sha256(other.bytes)) == std::string::npos) {
            return std::nullopt;
        }
        FakeReply reply = scene.mirror.usual(request);
        reply.body[7] ^= 1;
        return reply;
    };
    const Outcome outcome = scene.pull();
    CHECK(outcome.code() == "digest-mismatch");
    CHECK(outcome.exit() == Exit::integrity);
    CHECK(outcome.detail("mirrors").find(scene.mirror.host() + "/team/driver: the registry sent other bytes") !=
          std::string::npos);
    CHECK(outcome.detail("mirrors").find("has no blobs/" + sha256(other.bytes)) != std::string::npos);

    MirrorScene absent;
    const Outcome passed = absent.pull();
    CHECK(passed.code() == "ok");
    CHECK(passed.warned("mirror-failed"));
    CHECK_FALSE(passed.warned("has the manifest"));
}

TEST_CASE("M62 what a mirror sends as a tag's manifest and is not one is refused, and the next one is asked") {
    MirrorScene scene;
    scene.mirror.intercept = [](const FakeRequest&) {
        FakeReply reply;
        reply.body = "<html>please log in</html>";
        reply.headers.emplace_back("Content-Type", "text/html");
        return std::optional(reply);
    };
    const Outcome outcome = scene.pull();
    REQUIRE_MESSAGE(!outcome.error, outcome.message());
    CHECK(outcome.warned("mirror-failed"));
    CHECK(scene.mirror.server().count("/v2/team/") == 1);  // given up at once
    CHECK(scene.pull(":v1", true).code() == "bad-manifest");
}

TEST_CASE("M62 a blocked source is named where no mirror has the image") {
    MirrorScene scene;
    const Outcome outcome = scene.pull(":v1", true);
    CHECK(outcome.code() == "image-not-found");
    CHECK(scene.asked_of(scene.origin) == 0);
    const auto& details = outcome.error->details();
    CHECK(std::any_of(details.begin(), details.end(), [&](const auto& detail) {
        return detail.first == "source" && detail.second.find(scene.origin.host()) != std::string::npos;
    }));
}

TEST_CASE("M62 a mirror that wants a login never sees the source's credentials") {
    MirrorScene scene;
    scene.mirror.intercept = [](const FakeRequest&) {
        FakeReply reply;
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"m\"");
        return std::optional(reply);
    };
    registry::Credential secret;
    secret.key = scene.origin.host();
    secret.user = "u";
    secret.password = "canary-secret";
    const Outcome outcome = scene.pull(":v1", false, [&](auto& request) { request.credentials = {secret}; });
    CHECK(outcome.code() == "ok");
    CHECK(outcome.warned("mirror-failed"));
    for (const FakeRequest& request : scene.mirror.server().requests()) {
        CHECK(request.header("authorization").empty());
    }
    CHECK(scene.mirror.server().count("/v2/team/") == 1);  // given up at once
}

TEST_CASE("M62 a dead mirror is tried as often as any registry, then given up; a blocked source is never asked") {
    MirrorScene scene;
    scene.mirror.intercept = [](const FakeRequest&) {
        FakeReply reply;
        reply.status = 503;
        return std::optional(reply);
    };
    const Outcome outcome = scene.pull(":v1", false, [](auto& request) { request.attempts = 2; });
    CHECK(outcome.code() == "ok");
    CHECK(scene.asked_of(scene.mirror) == 2);
    const Outcome blocked = scene.pull(":v1", true);
    CHECK(blocked.code() == "registry-error");
    CHECK(scene.asked_of(scene.origin) == 3);
    const Outcome nobody = pull_from(scene.origin, [&](auto& request) {
        image::MirrorRule rule;
        rule.prefix = scene.origin.host();
        rule.blocked = true;
        request.mirrors = {rule};
    });
    CHECK(nobody.code() == "registry-blocked");
    CHECK(nobody.exit() == Exit::no_permission);
}

TEST_CASE("the certificates of one registry, as certs.d has them") {
    Identity identity = make_identity();
    const Identity client = make_identity();
    identity.client_ca_pem = client.certificate_pem;
    FakeRegistry registry(identity);
    registry.add_image("v1", {mirrored_layer()});
    const sys::TempDir top("kmm-test-");
    const std::string own = top.path() + "/second/" + registry.host();
    std::filesystem::create_directories(own);
    const auto pull = [&] {
        return pull_from(registry, [&](auto& request) {
            request.tls.insecure = false;
            request.certs_dirs = {top.path() + "/first", top.path() + "/second"};
        });
    };
    CHECK(pull().code() == "tls");
    std::ofstream(own + "/ca.crt") << identity.certificate_pem;
    CHECK(pull().error.has_value());  // it does not know us
    std::ofstream(own + "/client.cert") << client.certificate_pem;
    CHECK(pull().code() == "ca-file");
    std::ofstream(own + "/client.key") << client.key_pem;
    const Outcome outcome = pull();
    CHECK_MESSAGE(!outcome.error, outcome.message());
    std::string plain = registry.host();  // as containerd has it: 127.0.0.1_5000_
    plain[plain.find(':')] = '_';
    std::filesystem::rename(own, top.path() + "/second/" + plain + "_");
    CHECK(pull().code() == "ok");
}

TEST_CASE("as root, no file that others may change says whom to trust, or who we are") {
    if (::geteuid() != 0) { return; }
    constexpr unsigned k_somebody = 65534;
    Identity identity = make_identity();
    const Identity client = make_identity();
    identity.client_ca_pem = client.certificate_pem;
    FakeRegistry registry(identity);
    registry.add_image("v1", {mirrored_layer()});
    const sys::TempDir top("kmm-test-");
    const std::string own = top.path() + "/" + registry.host();
    std::filesystem::create_directories(own);
    const std::string file = top.path() + "/more.crt";
    const std::string of_variable = top.path() + "/variable.crt";
    for (const std::string& path : {own + "/ca.crt", file, of_variable}) {
        std::ofstream(path) << identity.certificate_pem;
    }
    std::ofstream(own + "/client.cert") << client.certificate_pem;
    std::ofstream(own + "/client.key") << client.key_pem;
    const auto pull = [&] {
        return pull_from(registry, [&](auto& request) {
            request.tls.insecure = false;
            request.tls.ca_file = file;
            request.certs_dirs = {top.path()};
        });
    };
    REQUIRE(::setenv("SSL_CERT_FILE", of_variable.c_str(), 1) == 0);
    CHECK(pull().code() == "ok");
    const auto count = registry.server().requests().size();
    for (const std::string& path : {own + "/ca.crt", own + "/client.cert", own + "/client.key", file, of_variable}) {
        REQUIRE(::chown(path.c_str(), k_somebody, k_somebody) == 0);
        const Outcome outcome = pull();
        CHECK(outcome.code() == "untrusted-file");
        CHECK(outcome.message().find(path) != std::string::npos);
        REQUIRE(::chown(path.c_str(), 0, 0) == 0);
    }
    ::unsetenv("SSL_CERT_FILE");
    CHECK(registry.server().requests().size() == count);
}

TEST_CASE("M61 TLS before 1.2 is refused") {
    Identity identity = make_identity();
    identity.old_tls = true;
    FakeRegistry registry(identity);
    const sys::TempDir top("kmm-test-");
    std::ofstream(top.path() + "/ca.pem") << identity.certificate_pem;
    const Outcome outcome = pull_from(registry, [&](auto& request) {
        request.tls.insecure = false;
        request.tls.ca_file = top.path() + "/ca.pem";
    });
    CHECK(outcome.code() == "tls");
    CHECK(outcome.exit() == Exit::integrity);
    CHECK(outcome.error->hint().find("TLS 1.2") != std::string::npos);
    CHECK(registry.server().requests().empty());
}

TEST_CASE("M61 what is wrong with our own certificate is said of that, and nobody is asked for a passphrase") {
    const sys::TempDir top("kmm-test-");
    const std::string encrypted = R"(-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiYrSqhb+STXwICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEKKQfHcfNPFcgjV2dT7DDCAEgZB4
YiRaCzAilApZ0H+jix+6jqTLxoUX/aDSL9ZcsiE4aztHK1DAb7LxYESAUwARuSMy
y7nyuNtwMFXX6guS+ZWimihj51AzV5Sq+x6X2G2RT+W7Luxf0Y3iDzLn52bV1Xpj
itqFY1OWPIlLY2PZMq3gMCXWnF4JN0B/OMnSEuhIJZkGbUlx04JyboculZVoXNA=
-----END ENCRYPTED PRIVATE KEY-----
)";
    const Identity server = make_identity();
    const Identity other = make_identity();
    std::ofstream(top.path() + "/ca.pem") << server.certificate_pem;
    for (const bool insecure : {false, true}) {
        for (const auto& [certificate, key] :
             {std::pair(server.certificate_pem, other.key_pem), std::pair(server.certificate_pem, encrypted),
              std::pair(std::string("none"), other.key_pem), std::pair(server.certificate_pem, std::string("none"))}) {
            std::ofstream(top.path() + "/client.cert") << certificate;
            std::ofstream(top.path() + "/client.key") << key;
            FakeRegistry registry(server);
            const Outcome outcome = pull_from(registry, [&](auto& request) {
                request.tls.insecure = insecure;
                request.tls.ca_file = top.path() + "/ca.pem";
                request.tls.client_certificate = top.path() + "/client.cert";
                request.tls.client_key = top.path() + "/client.key";
            });
            CHECK(outcome.code() == "tls");
            CHECK(outcome.message().find("client.") != std::string::npos);
            CHECK(outcome.error->hint() ==
                  "our own certificate and its key: expected PEM that belongs together, the key without a passphrase");
        }
    }
}

TEST_CASE("M61 the hint is about what is wrong with the certificate") {
    const sys::TempDir top("kmm-test-");
    const auto pull_with = [&](Identity identity, const std::string& authority, bool insecure = false) {
        FakeRegistry registry(std::move(identity));
        std::ofstream(top.path() + "/ca.pem") << authority;
        const Outcome outcome = pull_from(registry, [&](auto& request) {
            request.tls.insecure = insecure;
            request.tls.ca_file = top.path() + "/ca.pem";
        });
        CHECK(registry.server().requests().empty());
        return outcome;
    };
    const Identity expired = make_identity({"localhost", false, true});
    CHECK(pull_with(expired, expired.certificate_pem).error->hint().find("clock") != std::string::npos);
    const Identity elsewhere = make_identity({"localhost", true, false});
    CHECK(pull_with(elsewhere, elsewhere.certificate_pem)
              .error->hint()
              .find("a name that the server's certificate holds") != std::string::npos);
    const Identity good = make_identity();
    CHECK(pull_with(make_identity(), good.certificate_pem).error->hint().starts_with("--ca-file FILE adds"));
    Identity wants = make_identity();
    wants.client_ca_pem = good.certificate_pem;
    CHECK(pull_with(wants, wants.certificate_pem).error->hint().find("certs.d") != std::string::npos);
    for (const bool insecure : {false, true}) {
        const Outcome junk = pull_with(good, "no certificate", insecure);
        CHECK(junk.code() == "bad-certificate");
        CHECK(junk.exit() == Exit::data);
        CHECK(junk.message().find(top.path() + "/ca.pem") != std::string::npos);
    }
}

}
