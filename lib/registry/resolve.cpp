// SPDX-License-Identifier: Apache-2.0
#include "registry/resolve.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/source.hpp"

namespace kmm::registry {

namespace {

struct FetchedManifest {
    value::Node root;
    image::DocumentKind kind = image::DocumentKind::manifest;
    image::Digest digest;
};

class Resolver {
public:
    Resolver(ImageStore& store, const PullRequest& request, std::vector<std::string>& warnings)
        : store_(store), request_(request), warnings_(warnings),
          platform_{request.os, request.architecture, request.variant} {}

    ResolvedImage run() {
        const FetchedManifest top = fetch(store_.first_name(), store_.first_digest(), std::nullopt);
        if (top.kind == image::DocumentKind::manifest) {
            ResolvedImage image = complete(top);
            check_platform(image.config.platform);
            return image;
        }
        auto found = search(top, 1, Pass::named);
        if (!found) {
            found = search(top, 1, Pass::unnamed);
        }
        if (!found) {
            throw no_platform();
        }
        found->index_digest = top.digest.to_string();
        return std::move(*found);
    }

private:
    enum class Pass { named, unnamed };

    /// One manifest, verified. `digest` and `size` are what the reference or the index says.
    FetchedManifest fetch(const std::string& name, const std::optional<image::Digest>& digest,
                          std::optional<std::uint64_t> size) {
        const std::uint64_t cap = request_.limits.manifest_bytes;
        if (size && *size > cap) {
            throw limit_error("the size of the manifest", "manifest_bytes", cap);
        }
        const ManifestText text = store_.manifest(name, digest, cap);
        if (text.body.size() > cap) {
            throw limit_error("the size of the manifest", "manifest_bytes", cap);
        }
        if (size && text.body.size() != *size) {
            throw Error(Exit::integrity, "size-mismatch",
                        fmt::format("expected a manifest of {} bytes, found {}", *size, text.body.size()))
                .detail("manifest", name);
        }
        FetchedManifest result;
        result.digest = verified_manifest(text.body, digest);
        const std::string& announced = text.announced_digest;
        if (announced != result.digest.to_string() && announced.starts_with("sha256:")) {
            warnings_.push_back(fmt::format("content-digest: the registry announced {}, its bytes are {}",
                                            base::escape(announced.substr(0, 80)), result.digest.to_string()));
        }
        result.root = read_image_document(text.body, "manifest", "bad-manifest");
        result.kind = image::document_kind(result.root, text.content_type);
        return result;
    }

    /// Depth first, in document order: the first match wins (image-spec, "Image Index").
    std::optional<ResolvedImage> search(const FetchedManifest& index, std::uint64_t depth, Pass pass) {
        const Limits& limits = request_.limits;
        if (depth > limits.index_depth) {
            throw limit_error("the depth of nested indexes", "index_depth", limits.index_depth);
        }
        const image::Index list = image::decode_index(index.root);
        entries_ += list.manifests.size();
        if (entries_ > limits.index_entries * (pass == Pass::named ? 1U : 2U)) {
            throw limit_error("the number of entries of the index", "index_entries", limits.index_entries);
        }
        for (const image::Descriptor& entry : list.manifests) {
            const bool nested = entry.media_type == image::k_oci_index || entry.media_type == image::k_docker_list;
            const bool image = entry.media_type == image::k_oci_manifest || entry.media_type == image::k_docker_manifest;
            if (entry.platform) {
                offered_.insert(entry.platform->to_string());
            }
            const bool named = entry.platform.has_value() && !entry.platform->architecture.empty();
            if (named && !image::matches(*entry.platform, platform_)) {
                continue;
            }
            if (nested) {
                if (auto found = search(fetch_child(entry), depth + 1, pass)) {
                    return found;
                }
            } else if (image && named == (pass == Pass::named)) {
                ResolvedImage candidate = complete(fetch_child(entry));
                offered_.insert(candidate.config.platform.to_string());
                if (image::matches(candidate.config.platform, platform_)) {
                    return candidate;
                }
                if (named) {
                    check_platform(candidate.config.platform);
                }
            }
        }
        return std::nullopt;
    }

    FetchedManifest fetch_child(const image::Descriptor& entry) {
        FetchedManifest child = fetch(entry.digest.to_string(), entry.digest, entry.size);
        const bool index = entry.media_type == image::k_oci_index || entry.media_type == image::k_docker_list;
        if (index != (child.kind == image::DocumentKind::index)) {
            throw Error(Exit::data, "bad-manifest", "expected the media type that the index says, found another")
                .detail("manifest", entry.digest.to_string());
        }
        return child;
    }

    ResolvedImage complete(const FetchedManifest& fetched) {
        ResolvedImage image;
        image.digest = fetched.digest;
        image.manifest = image::decode_manifest(fetched.root);
        const image::Descriptor& config = image.manifest.config;
        if (config.size > request_.limits.config_bytes) {
            throw limit_error("the size of the image configuration", "config_bytes", request_.limits.config_bytes);
        }
        TextTarget text;
        store_.blob(config, text, warnings_, nullptr);
        image.config = image::decode_config(read_image_document(text.text(), "image configuration", "bad-manifest"));
        return image;
    }

    void check_platform(const image::Platform& found) const {
        if (!image::matches(found, platform_)) {
            throw Error(Exit::data, "platform-mismatch", fmt::format("expected an image for {}, found one for {}",
                                                                     platform_.to_string(), found.to_string()))
                .hint("build the image for the nodes' architecture");
        }
    }

    [[nodiscard]] Error no_platform() const {
        const std::vector<std::string> names(offered_.begin(), offered_.end());
        return Error(Exit::not_found, "no-platform",
                     fmt::format("expected an image for {} in the index, found {}", platform_.to_string(),
                                 names.empty() ? "none with a platform" : base::escape(base::join(names, ", "))))
            .hint("build and push the image for the nodes' architecture");
    }

    ImageStore& store_;
    const PullRequest& request_;
    std::vector<std::string>& warnings_;
    image::Platform platform_;
    std::set<std::string> offered_;
    std::uint64_t entries_ = 0;
};

}  // namespace

ResolvedImage resolve_image(ImageStore& store, const PullRequest& request, std::vector<std::string>& warnings) {
    return Resolver(store, request, warnings).run();
}

}  // namespace kmm::registry
