// SPDX-License-Identifier: Apache-2.0
#include "registry/client/signatures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/client/blob.hpp"
#include "registry/client/document_service.hpp"
#include "registry/client/resolve.hpp"
#include "registry/layer/hash.hpp"
#include "trust/signature.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_reasons_shown = 5;

/// A signature with its payload, or why it could not be fetched.
struct FetchedSignature {
    std::string payload, signature, fault;
};

/// True for what is wrong with a signature itself: another one may be good.
bool is_of_content(const Error& error) {
    return error.exit() == Exit::data || error.exit() == Exit::integrity || error.exit() == Exit::not_found;
}

class TrustCheck {
public:
    TrustCheck(const RegistryImage* image, const PullRequest& request, std::vector<std::string>& warnings)
        : image_(image), request_(request), warnings_(warnings) {
        if (image_ != nullptr) {
            subject_.name = trust::named_image(image_->name);
            for (const std::string& manifest : image_->manifests) {
                for (const auto algorithm : algorithms()) {
                    tags_.push_back(trust::signature_tag(digest_of(manifest, algorithm)));
                }
            }
        }
        subject_.has_digest = [this](const image::Digest& digest) {
            return std::any_of(image_->manifests.begin(), image_->manifests.end(),
                               [&](const std::string& text) { return digest_of(text, digest.algorithm) == digest; });
        };
    }

    void require(const trust::Requirement& requirement) {
        switch (requirement.kind) {
            case trust::Requirement::Kind::accept: return;
            case trust::Requirement::Kind::reject:
                throw with_place(Error(Exit::integrity, "image-rejected", "the policy rejects this image"), requirement)
                    .hint("allow its repository in the policy, or use an image that is allowed");
            case trust::Requirement::Kind::unsupported:
                throw with_place(
                    Error(Exit::config, "policy-unsupported",
                          fmt::format("the policy requires {}, which cannot be checked here", requirement.type)),
                    requirement)
                    .hint("require sigstoreSigned with keyPath for this image, and sign it with cosign sign --key");
            case trust::Requirement::Kind::signature: require_signature(requirement); return;
        }
    }

private:
    [[nodiscard]] trust::PayloadReader payload_reader() const {
        return [parser = request_.parser](std::string_view text) { return read_signed_payload(parser, text); };
    }

    static Error with_place(Error error, const trust::Requirement& requirement) {
        if (!requirement.position.file.empty()) {
            error.detail("policy", requirement.position.to_string());
        }
        return error;
    }

    void require_signature(const trust::Requirement& requirement) {
        std::vector<std::string> faults;
        for (std::size_t i = 0; i < signatures_.size() || fetch_more(); ++i) {
            const FetchedSignature& signature = signatures_[i];
            const auto fault = signature.fault.empty() ? trust::signature_fault(requirement, signature.payload,
                                                                                signature.signature, subject_,
                                                                                payload_reader())
                                                       : signature.fault;
            if (!fault) {
                return;
            }
            faults.push_back(*fault);
        }
        if (faults.empty()) {
            look_for_bundles();
        }
        throw with_place(refusal(requirement, faults), requirement);
    }

    /// Signatures in the form of cosign 3: they refer to the image, and are listed by the registry, or under the tag
    /// sha256-DIGEST. Without an answer nothing is known of them.
    void look_for_bundles() {
        for (std::size_t i = 0; image_ != nullptr && bundle_.empty() && i < image_->manifests.size(); ++i) {
            const image::Digest digest = digest_of(image_->manifests[i]);
            const std::string tag = fmt::format("{}-{}", image::to_string(digest.algorithm), digest.hex);
            for (const bool by_tag : {true, false}) {
                try {
                    const std::string text =
                        by_tag ? image_->store.manifest(tag, std::nullopt, request_.limits.config_bytes).body
                               : image_->store.referrers(digest, request_.limits.config_bytes);
                    note_bundle(text);
                } catch (const Error&) {
                    continue;
                }
            }
        }
    }

    void note_bundle(const std::string& index) {
        if (index.empty()) {
            return;
        }
        begin_other_bytes(request_.parser);
        const value::Node root =
            read_image_document(request_.parser, index, "list of referrers", "bad-manifest");
        const value::Node* manifests = root.find("manifests");
        for (const auto& entry : manifests == nullptr ? std::vector<value::Node>() : manifests->items()) {
            const std::string type = entry.get_string({"artifactType"});
            if (type.starts_with("application/vnd.dev.sigstore.bundle") && bundle_.empty()) {
                bundle_ = type;
            }
        }
    }

    [[nodiscard]] Error refusal(const trust::Requirement& requirement, const std::vector<std::string>& faults) const {
        if (faults.empty() && !bundle_.empty()) {
            Error error(Exit::integrity, "signature-format",
                        "expected a signature under the tag sha256-DIGEST.sig, found a sigstore bundle alone, which "
                        "is not read here");
            return std::move(error)
                .detail("bundle", base::escape(bundle_))
                .hint(fmt::format("cosign 3 signs as expected with: cosign sign --new-bundle-format=false --key KEY {}",
                                  subject_.name->to_string()));
        }
        if (faults.empty()) {
            Error error(Exit::integrity, "image-unsigned", "expected a signature of the image, found none");
            for (const trust::PublicKey& key : requirement.keys) {
                error.detail("key", base::escape(key.name()));
            }
            return std::move(error).hint(subject_.name
                                             ? fmt::format("cosign sign --key KEY {}", subject_.name->to_string())
                                             : "images of files carry no signatures: pull it from a registry, or allow "
                                               "the file's directory in the policy");
        }
        Error error(Exit::integrity, "signature-rejected",
                    faults.size() == 1
                        ? "the signature is not accepted: " + faults.front()
                        : fmt::format("expected one accepted signature, found {} that are not", faults.size()));
        for (std::size_t i = 0; faults.size() > 1 && i < std::min(faults.size(), k_reasons_shown); ++i) {
            error.detail(fmt::format("signature {}", i + 1), faults[i]);
        }
        return std::move(error).hint(
            "sign the image with the key and the name that are expected, or correct the policy");
    }

    /// Of the digests that tags of signatures are made of: SHA-256, as cosign and skopeo compute it, and that of the
    /// reference.
    [[nodiscard]] std::vector<image::DigestAlgorithm> algorithms() const {
        std::vector<image::DigestAlgorithm> made{image::DigestAlgorithm::sha256};
        if (image_->name.digest && image_->name.digest->algorithm != made.front()) {
            made.push_back(image_->name.digest->algorithm);
        }
        return made;
    }

    /// Fetches the signatures of the next tag that has any; false if there is none.
    bool fetch_more() {
        const std::size_t before = signatures_.size();
        while (signatures_.size() == before && looked_at_ < tags_.size()) {
            fetch(tags_[looked_at_++]);
        }
        return signatures_.size() != before;
    }

    void fetch(const std::string& tag) {
        std::vector<trust::Attachment> attached;
        try {
            const FetchedManifest manifest =
                fetch_manifest(image_->store, tag, std::nullopt, nullptr, request_, warnings_);
            if (manifest.kind != image::DocumentKind::manifest) {
                throw Error(Exit::data, "bad-manifest", "expected a manifest with signatures, found an index");
            }
            attached = trust::decode_attachments(manifest.root);
        } catch (const Error& error) {
            if (error.code() == "image-not-found" || error.code() == "image-not-cached") {
                return;
            }
            if (!is_of_content(error)) {
                throw;
            }
            signatures_.push_back({{}, {}, fmt::format("the manifest {}: {}", tag, error.message())});
            return;
        }
        std::erase_if(attached, [](const trust::Attachment& one) { return !one.is_signature; });
        if (signatures_.size() + attached.size() > request_.limits.layers) {
            throw limit_error("the number of signatures", "layers", request_.limits.layers);
        }
        for (const trust::Attachment& one : attached) {
            signatures_.push_back(fetch(one));
        }
    }

    FetchedSignature fetch(const trust::Attachment& attached) {
        if (attached.payload.size > request_.limits.config_bytes) {
            throw limit_error("the size of a signature", "config_bytes", request_.limits.config_bytes);
        }
        try {
            TextTarget text;
            image_->store.blob(attached.payload, text, warnings_, nullptr);
            return {text.text(), attached.signature, {}};
        } catch (const Error& error) {
            if (!is_of_content(error)) {
                throw;
            }
            return {{}, {}, error.message()};
        }
    }

    const RegistryImage* image_;
    const PullRequest& request_;
    std::vector<std::string>& warnings_;
    trust::Subject subject_;
    std::vector<FetchedSignature> signatures_;
    std::string bundle_;         ///< media type of a sigstore bundle that refers to the image, "" if none is known
    std::vector<std::string> tags_;  ///< of signatures of the image, and of indexes it is in
    std::size_t looked_at_ = 0;      ///< tags whose signatures have been fetched
};

}  // namespace

void require_trust(const RegistryImage* image, const PullRequest& request, std::vector<std::string>& warnings) {
    TrustCheck check(image, request, warnings);
    for (const trust::Requirement& requirement : request.requirements) {
        check.require(requirement);
    }
    if (!request.requirements.empty()) {
        begin_other_bytes(request.parser);  // what is beside an image is not vouched for by it, nor the other way round
    }
}

void require_trust(ImageStore& store, const std::optional<image::Reference>& name,
                   const std::vector<std::string>& manifests, const PullRequest& request,
                   std::vector<std::string>& warnings) {
    const RegistryImage image{store, name.value_or(image::Reference{}), manifests};
    require_trust(name ? &image : nullptr, request, warnings);
}

}  // namespace kmm::registry
