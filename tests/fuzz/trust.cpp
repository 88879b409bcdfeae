// SPDX-License-Identifier: Apache-2.0
// Policies, mirrors, keys, and what signatures of images say.
#include <string>

#include "base/error.hpp"
#include "fuzz/target.hpp"
#include "image/mirrors.hpp"
#include "registry/client/document_service.hpp"
#include "trust/signature.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const std::string_view text = fuzz::text_of(data, size);
    const auto attempt = [](const auto& body) {
        try {
            body();
        } catch (const Error& error) {
            fuzz::require(error.exit() == Exit::data, "what is wrong with a policy or a signature is bad data");
        }
    };
    attempt([&] {
        const trust::Policy policy = trust::read_policy(text, "policy.json");
        fuzz::require(!policy.fallback.empty(), "a policy has a default");
        for (const char* name : {"busybox", "reg.example.com:5000/team/driver:v1"}) {
            fuzz::require(
                !trust::requirements_for(policy, "docker", trust::scopes_of(*trust::named_image(name))).empty(),
                "a scope requires something");
        }
    });
    attempt([&] { (void)image::read_mirrors(text, "registries.conf"); });
    attempt([&] {
        const trust::Payload payload = trust::decode_payload(trust::read_payload(text));
        fuzz::require(image::parse_digest(payload.digest.to_string()) == payload.digest,
                      "a digest is read as it is written");
    });
    attempt([&] {
        for (const auto& attached : trust::decode_attachments(
                 registry::read_image_document(nullptr, std::string(text), "manifest", "bad-manifest"))) {
            fuzz::require(!attached.payload.media_type.empty(), "an attachment has a type");
        }
    });
    attempt([&] {
        const trust::PublicKey key(text, "key.pub");
        fuzz::require(!key.verifies(text, text), "a key does not sign itself");
    });
    if (const auto name = trust::named_image(text)) {
        const auto again = trust::named_image(name->to_string());
        fuzz::require(again && again->to_string() == name->to_string(), "a full name is read as it is written");
        fuzz::require(trust::scopes_of(*name).front() == name->to_string(), "the first scope is the image itself");
    }
    return 0;
}
