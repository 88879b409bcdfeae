// SPDX-License-Identifier: Apache-2.0
// Signatures as cosign attaches them to images: where they are, what they say, and whether one meets a requirement.
// Source: cosign, specs/SIGNATURE_SPEC.md; containers/image, signature/internal/sigstore_payload.go and
// signature/policy_eval_sigstore.go.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/digest.hpp"
#include "image/manifest.hpp"
#include "trust/policy.hpp"
#include "value/node.hpp"

namespace kmm::trust {

/// The tag beside the image with its signatures: "sha256-….sig".
[[nodiscard]] std::string signature_tag(const image::Digest& digest);

/// A layer of the manifest under that tag. Nothing of it is proven.
struct Attachment {
    image::Descriptor payload;
    std::string signature;  ///< base64; "" if the annotation is not there
    bool is_signature = false;  ///< false for other things that are attached, as attestations
};

/// The layers of a manifest under a signature tag. Errors: as image::decode_manifest.
[[nodiscard]] std::vector<Attachment> decode_attachments(const value::Node& root);

/// What a payload says was signed.
struct Payload {
    image::Digest digest;
    std::string reference;  ///< critical.identity.docker-reference
};

/// The document that was signed. Errors: data "bad-payload": not JSON.
[[nodiscard]] value::Node read_payload(std::string_view text);
/// Errors: data "bad-payload": unknown members, another type, a digest that is none.
[[nodiscard]] Payload decode_payload(const value::Node& root);

/// What a signature must be made for.
struct Subject {
    std::optional<NamedImage> name;  ///< nullopt for an image without one, as of a file
    std::function<bool(const image::Digest&)>
        has_digest;  ///< true for the digest of the manifest, or of an index it was taken from
};

/// Reads a payload as read_payload().
using PayloadReader = std::function<value::Node(std::string_view)>;

/// Why a signature does not meet `requirement`, of Kind::signature; nullopt if it does. The signature is verified
/// before the payload is read with `read`. Errors: of `read`, but for those of Exit::data.
[[nodiscard]] std::optional<std::string> signature_fault(const Requirement& requirement, std::string_view payload,
                                                         std::string_view signature, const Subject& subject,
                                                         const PayloadReader& read = read_payload);

}  // namespace kmm::trust
