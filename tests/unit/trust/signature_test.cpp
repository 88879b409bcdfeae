// SPDX-License-Identifier: Apache-2.0
// Signatures that other programs made: skopeo's library (containers/image 5.36.2) and openssl.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "trust/signature.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

constexpr const char* k_payload =
    R"({"critical":{"identity":{"docker-reference":"127.0.0.1:38105/team/driver:signed"},"image":{"docker-manifest-digest":)"
    R"("sha256:a58ff8961e8d73199c70ad0203f2ef0e90d5d25d1c0b821c4e7503998de663e0"},"type":"cosign container image signature"},)"
    R"("optional":{"creator":"containers/image 5.36.2","timestamp":1795665022}})";
const std::string k_signed_digest = "sha256:a58ff8961e8d73199c70ad0203f2ef0e90d5d25d1c0b821c4e7503998de663e0";

struct Maker {
    const char* name;
    const char* key;
    const char* signature;
};

/// The first by containers/image, the others by openssl dgst and openssl pkeyutl.
constexpr Maker k_makers[] = {
    {"ec",
     "-----BEGIN PUBLIC KEY-----\n"
     "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEnVH9mFzk1DZPw2bnUPEq4nCa/978\n"
     "YeheSdNjvdsOUC0II7KArkZCMNUuVTaC+W6QvfSGrf+/hDPpXKkoDtPwNg==\n"
     "-----END PUBLIC KEY-----\n",
     "MEQCID0G4zweIGzU/zy0UlsXbsJJEkaHhcXTdQydkf7/lJbEAiBEAIyr7cchfPMNsbnfsInCl0A4NNQoLHN0fy6fe6rM+w=="},
    {"rsa",
     "-----BEGIN PUBLIC KEY-----\n"
     "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr0QnSyjkSN07QH81dKoM\n"
     "TNyWu+2pTnkRfuIsarxkLaS5kdVnhM4fjZqTdXqpreXTZGFsIqFrMfgzrHLqiqz8\n"
     "VgIYwzVyGG2mcKsn1hUTsM8joI+52ozDI4lsPIkfaCshKPbbMJqZoD8OszYuwRFi\n"
     "pf/XqZLZyXNEVYqNP4IOXgKl6hJeuSs+Jz7chuKTvlZdMdKWd9hqdkjXcb3JjO01\n"
     "1aL2dZPr7pONLZj9x/3A5J/SnSzFYMQiMv0M8iGshYgROO7q0BeEUfwg2plOOijQ\n"
     "mJ+cg3hlroF00L1FpbPA7fgGXCFGN5frFXMO+DeT4aHoRinXdTyyE1O6+9HhruZq\n"
     "zQIDAQAB\n"
     "-----END PUBLIC KEY-----\n",
     "YzKMoDQW13oUiyW+tnBFvY3V6hN3ZHxY+wM73vaQSGQnqnRVLcaSuh8qLbw0wgR62Yh4oE1+36H7vwBwOGSsHRCZJIGnIx1vAPyB/"
     "oJdXyhVJcVzJw6tRZh13aHqhcjH+xdl2jzt0awYvcxbu83HUv1V"
     "Qz6jNHVxdSYRSSkB7ICt9RSjTV7NtXHTjtwFaNkY/"
     "QJalczs52Hxm7h2zjWquY1Flfep6O6KQAzF6Zryb59pR9q2MsRgUSot8IVtky0DJZvqBGGrwn5iiqPLwlGqSg4BYV0pQa9u7PjHNi12yRJV08pF"
     "abpklBTjOYTNmwxbqRe1viWx8Knib0Yun8Gsqw=="},
    {"ed25519",
     "-----BEGIN PUBLIC KEY-----\n"
     "MCowBQYDK2VwAyEA12VlR1eW7A2Y8r5+/tBKENa/kOEgJK+xVYE66j7+jTc=\n"
     "-----END PUBLIC KEY-----\n",
     "GCFWfj2LmVbXz5PhpVuwkfyw/YBaK1AemCWPQrhzGE/IrBFmGe/MLW2EAJ2atjC+XB5dn1vqsYiHPtLlQRacCQ=="},
};

trust::Requirement require_key(const Maker& maker) {
    trust::Requirement made;
    made.kind = trust::Requirement::Kind::signature;
    made.keys.emplace_back(maker.key, maker.name);
    return made;
}

trust::Subject subject(const std::string& reference, const std::string& digest = k_signed_digest) {
    return {trust::named_image(reference),
            [digest](const image::Digest& asked) { return asked.to_string() == digest; }};
}

std::string fault(const Maker& maker, const std::string& payload, const std::string& signature,
                  const trust::Subject& of) {
    return trust::signature_fault(require_key(maker), payload, signature, of).value_or("accepted");
}

std::string payload_fault(const std::string& text) {
    try {
        static_cast<void>(trust::decode_payload(trust::read_payload(text)));
    } catch (const Error& error) {
        CHECK(error.code() == "bad-payload");
        return error.message();
    }
    return "accepted";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace

TEST_SUITE("trust::unit") {

TEST_CASE("signatures of other programs, and every byte of them") {
    const auto image = subject("127.0.0.1:38105/team/driver:signed");
    for (const Maker& maker : k_makers) {
        CAPTURE(maker.name);
        CHECK(fault(maker, k_payload, maker.signature, image) == "accepted");
        CHECK(fault(maker, k_payload, maker.signature, subject("127.0.0.1:38105/team/driver:v2"))
                  .starts_with("it is for the name \"127.0.0.1:38105/team/driver:signed\""));
        CHECK(fault(maker, k_payload, maker.signature,
                    subject("127.0.0.1:38105/team/driver:signed", "sha256:" + std::string(64, '0'))) ==
              "it is for another image, " + k_signed_digest);
        CHECK(fault(maker, k_payload, "", image) == "it has no annotation dev.cosignproject.cosign/signature");
        CHECK(fault(maker, k_payload, "!", image) == "its signature is not base64");
        const std::string payload = k_payload;
        for (std::size_t i = 0; i < payload.size(); ++i) {
            std::string changed = payload;
            changed[i] = static_cast<char>(changed[i] ^ 1);
            CHECK(fault(maker, changed, maker.signature, image).starts_with("it was not made with the key"));
        }
        const std::string signature = maker.signature;
        for (std::size_t i = 0; i + 8 < signature.size(); ++i) {
            std::string changed = signature;
            changed[i] = changed[i] == 'A' ? 'B' : 'A';
            CHECK(fault(maker, k_payload, changed, image) != "accepted");
        }
        for (const Maker& other : k_makers) {
            CHECK((fault(other, k_payload, maker.signature, image) == "accepted") == (&other == &maker));
        }
    }
    trust::Requirement several = require_key(k_makers[0]);
    several.keys.emplace_back(k_makers[1].key, "second");
    CHECK_FALSE(trust::signature_fault(several, k_payload, k_makers[1].signature, image));
    CHECK(trust::signature_fault(several, k_payload, k_makers[2].signature, image) ==
          "it was not made with one of 2 keys, or what was signed has changed");
    several.keys.clear();
    CHECK(trust::signature_fault(several, k_payload, k_makers[0].signature, image));
}

TEST_CASE("a signed name that only lacks the tag is told how it can be accepted") {
    const std::string advice =
        "; signedIdentity {\"type\": \"matchRepository\"} accepts names without a tag, which cosign signs";
    trust::Requirement requirement = require_key(k_makers[0]);
    const auto said = [&](const std::string& claimed) {
        const std::string payload = replaced(k_payload, "127.0.0.1:38105/team/driver:signed", claimed);
        return trust::signature_fault(requirement, k_payload, k_makers[0].signature,
                                      subject("127.0.0.1:38105/team/driver:v1"),
                                      [&](std::string_view) { return trust::read_payload(payload); })
            .value_or("accepted");
    };
    CHECK(said("127.0.0.1:38105/team/driver").ends_with(advice));
    CHECK_FALSE(said("127.0.0.1:38105/team/driver:signed").ends_with(advice));
    CHECK_FALSE(said("127.0.0.1:38105/team/other").ends_with(advice));
}

TEST_CASE("payloads wrong in each member") {
    const std::string good = k_payload;
    CHECK(payload_fault(good) == "accepted");
    CHECK(payload_fault(replaced(good, R"({"creator":"containers/image 5.36.2","timestamp":1795665022})", "null")) ==
          "accepted");
    CHECK(payload_fault(replaced(good, "1795665022", "1.0")) == "accepted");
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"cosign container", "other container"},
             {"sha256:a", "sha256:A"},
             {"sha256:", "md5:"},
             {"\"critical\"", "\"Critical\""},
             {"\"optional\"", "\"more\""},
             {"\"identity\"", "\"Identity\""},
             {"\"image\"", "\"images\""},
             {"\"type\"", "\"kind\""},
             {"\"docker-reference\"", "\"reference\""},
             {"\"docker-manifest-digest\"", "\"digest\""},
             {"\"127.0.0.1:38105/team/driver:signed\"", "7"},
             {"\"containers/image 5.36.2\"", "5"},
             {"1795665022", "1.5"},
             {"1795665022", "\"today\""},
             {R"({"docker-reference":"127.0.0.1:38105/team/driver:signed"})", "null"},
             {"{\"critical\"", "[{\"critical\""},
             {R"({"creator":"containers/image 5.36.2","timestamp":1795665022})", "[]"},
             {"\"type\":", "\"type\":null,\"type\":"},
             {"{\"docker-ref", "{\"more\":1,\"docker-ref"}}) {
        CHECK_MESSAGE(payload_fault(replaced(good, from, to)) != "accepted", from << " as " << to);
    }
    CHECK(payload_fault("") == "the signed text is not a JSON document");
    CHECK(payload_fault("null") == "the signed text has a document that is not an object");
    CHECK(payload_fault("{}") == "the signed text has no critical");
}

TEST_CASE("where signatures are, and which layers are signatures") {
    CHECK(trust::signature_tag({image::DigestAlgorithm::sha256, "ab"}) == "sha256-ab.sig");
    Diagnostics faults;
    const std::string digest = "sha256:" + std::string(64, 'a');
    const std::string text =
        R"({"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":")" + digest +
        R"(","size":2},"layers":[
      {"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":")" +
        digest + R"(","size":3,"annotations":{"dev.cosignproject.cosign/signature":"c2ln"}},
      {"mediaType":"application/vnd.dsse.envelope.v1+json","digest":")" +
        digest + R"(","size":4,"annotations":{"dev.cosignproject.cosign/signature":7}}]})";
    const auto attached = trust::decode_attachments(value::read_json(text, "manifest", faults).front().root);
    REQUIRE(attached.size() == 2);
    CHECK((attached[0].is_signature && attached[0].signature == "c2ln" && attached[0].payload.size == 3));
    CHECK((!attached[1].is_signature && attached[1].signature.empty()));
}

}
