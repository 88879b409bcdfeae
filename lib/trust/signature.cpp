// SPDX-License-Identifier: Apache-2.0
#include "trust/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"

namespace kmm::trust {

namespace {

using value::Node;

constexpr std::string_view k_payload_type = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr const char* k_signature_annotation = "dev.cosignproject.cosign/signature";
constexpr std::string_view k_signed_type = "cosign container image signature";
constexpr std::size_t k_payload_bytes = 4U << 20U;

Error bad_payload(const std::string& why) { return Error(Exit::data, "bad-payload", "the signed text " + why); }

/// `node` must be an object with exactly the members `names`.
void expect_members(const Node& node, const std::string& what, const std::vector<std::string>& names) {
    if (!node.is_mapping()) {
        throw bad_payload(fmt::format("has {} that is not an object", what));
    }
    for (const std::string& name : names) {
        if (node.find(name) == nullptr) {
            throw bad_payload(fmt::format("has no {}{}", what == "a document" ? "" : what + ".", name));
        }
    }
    for (const value::Member& member : node.members()) {
        if (std::find(names.begin(), names.end(), member.key) == names.end()) {
            throw bad_payload(fmt::format("has an unknown member {} in {}", base::escape(member.key), what));
        }
    }
}

const std::string& text_member(const Node& node, const char* name) {
    const Node* found = node.find(name);
    if (!found->is_string()) {
        throw bad_payload(fmt::format("has a {} that is not a string", name));
    }
    return found->text();
}

void check_optional(const Node& optional) {
    if (optional.is_null()) {
        return;  // as cosign writes it
    }
    if (!optional.is_mapping()) {
        throw bad_payload("has an optional that is not an object");
    }
    const Node* creator = optional.find("creator");
    if (creator != nullptr && !creator->is_string() && !creator->is_null()) {
        throw bad_payload("has an optional.creator that is not a string");
    }
    const Node* timestamp = optional.find("timestamp");
    if (timestamp == nullptr || timestamp->is_null()) {
        return;
    }
    const bool number = timestamp->kind() == value::Kind::integer || timestamp->kind() == value::Kind::floating;
    const double seconds = number ? std::strtod(timestamp->text().c_str(), nullptr) : 0.5;
    if (seconds != std::trunc(seconds)) {
        throw bad_payload("has an optional.timestamp that is not a whole number");
    }
}

/// True if `claimed` is the repository of the subject, without a tag and a digest.
bool lacks_tag_alone(const std::string& claimed, const Subject& subject) {
    const auto name = named_image(claimed);
    return name && subject.name && name->tag.empty() && name->digest.empty() && name->name == subject.name->name;
}

}  // namespace

std::string signature_tag(const image::Digest& digest) {
    return fmt::format("{}-{}.sig", image::to_string(digest.algorithm), digest.hex);
}

std::vector<Attachment> decode_attachments(const Node& root) {
    Node copy = root;
    if (Node* config = copy.find("config"); config != nullptr && config->is_mapping()) {
        config->set("mediaType", image::k_oci_config);  // it is never read
    }
    image::Manifest manifest = image::decode_manifest(copy);
    std::vector<Attachment> result;
    const Node* layers = root.find("layers");
    for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
        Attachment made;
        made.payload = std::move(manifest.layers[i]);
        made.is_signature = made.payload.media_type == k_payload_type;
        made.signature = layers->items()[i].get_string({"annotations", k_signature_annotation});
        result.push_back(std::move(made));
    }
    return result;
}

Node read_payload(std::string_view text) {
    Diagnostics faults;
    value::ReadLimits limits;
    limits.bytes_max = k_payload_bytes;
    auto documents = value::read_json(text, "payload", faults, limits);
    if (has_errors(faults) || documents.size() != 1) {
        throw bad_payload("is not a JSON document");
    }
    return std::move(documents.front().root);
}

Payload decode_payload(const Node& root) {
    expect_members(root, "a document", {"critical", "optional"});
    check_optional(*root.find("optional"));
    const Node& critical = *root.find("critical");
    expect_members(critical, "critical", {"type", "image", "identity"});
    if (const std::string& type = text_member(critical, "type"); type != k_signed_type) {
        throw bad_payload(fmt::format("has the type \"{}\", expected \"{}\"", base::escape(type), k_signed_type));
    }
    const Node& image = *critical.find("image");
    expect_members(image, "critical.image", {"docker-manifest-digest"});
    const std::string& digest = text_member(image, "docker-manifest-digest");
    const auto parsed = image::parse_digest(digest);
    if (!parsed) {
        throw bad_payload(fmt::format("has \"{}\", which is not a digest", base::escape(digest)));
    }
    const Node& identity = *critical.find("identity");
    expect_members(identity, "critical.identity", {"docker-reference"});
    return {*parsed, text_member(identity, "docker-reference")};
}

std::optional<std::string> signature_fault(const Requirement& requirement, std::string_view payload,
                                           std::string_view signature, const Subject& subject,
                                           const PayloadReader& read) {
    if (signature.empty()) {
        return fmt::format("it has no annotation {}", k_signature_annotation);
    }
    const auto decoded = base::from_base64(signature);
    if (!decoded) {
        return "its signature is not base64";
    }
    const bool made_by_key = std::any_of(requirement.keys.begin(), requirement.keys.end(),
                                         [&](const PublicKey& key) { return key.verifies(payload, *decoded); });
    if (!made_by_key) {
        return requirement.keys.size() == 1
                   ? "it was not made with the key, or what was signed has changed"
                   : fmt::format("it was not made with one of {} keys, or what was signed has changed",
                                 requirement.keys.size());
    }
    try {
        const Payload said = decode_payload(read(payload));
        if (!subject.has_digest(said.digest)) {
            return fmt::format("it is for another image, {}", said.digest.to_string());
        }
        if (!requirement.identity.accepts(subject.name, said.reference)) {
            return fmt::format("it is for the name \"{}\", which the requirement does not accept for {}{}",
                               base::escape(said.reference),
                               subject.name ? subject.name->to_string() : "an image of a file",
                               lacks_tag_alone(said.reference, subject)
                                   ? "; signedIdentity {\"type\": \"matchRepository\"} accepts names without a tag, "
                                     "which cosign signs"
                                   : "");
        }
    } catch (const Error& error) {
        if (error.exit() != Exit::data) {
            throw;
        }
        return error.message();
    }
    return std::nullopt;
}

}  // namespace kmm::trust
