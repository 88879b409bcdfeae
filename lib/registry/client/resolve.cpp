// SPDX-License-Identifier: Apache-2.0
#include "registry/client/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/client/document_service.hpp"
#include "registry/layer/source.hpp"

namespace kmm::registry {

namespace {

bool is_index_type(std::string_view media_type) {
    return media_type == image::k_oci_index || media_type == image::k_docker_list;
}

class Resolver {
public:
    Resolver(ImageStore& store, const PullRequest& request, std::vector<std::string>& warnings)
        : store_(store), request_(request), warnings_(warnings),
          platform_{request.os, request.architecture, request.variant} {}

    ResolvedImage run() {
        const FetchedManifest top =
            fetch_manifest(store_, store_.first_name(), store_.first_digest(), nullptr, request_, warnings_);
        if (top.kind == image::DocumentKind::manifest) {
            ResolvedImage image = complete(top);
            check_platform(image.config.platform);
            return image;
        }
        auto found = search(top, 1, Pass::named);
        if (!found) {
            found = search(top, 1, Pass::unnamed);
        }
        if (!found && special_) {
            found = search(top, 1, Pass::special);
        }
        if (!found && offered_.empty() && unreadable_.empty()) {
            unreadable_ = artifact_;
        }
        if (!found && !unreadable_.empty()) {
            throw Error(Exit::data, "unsupported-image",
                        fmt::format("expected an image manifest for {} in the index, found media type \"{}\"",
                                    platform_.to_string(), base::escape(unreadable_)))
                .hint("rebuild the image with a container build tool");
        }
        if (!found) {
            throw no_platform();
        }
        found->index_digest = top.digest.to_string();
        note_text(*found, top);
        return std::move(*found);
    }

private:
    enum class Pass { named, unnamed, special };  ///< special: entries that need features of a runtime

    /// The entries of an index, nearest to the platform first, else in document order (image-spec, "Image Index").
    [[nodiscard]] std::vector<const image::Descriptor*> nearest_first(const image::Index& list) const {
        std::vector<std::pair<int, const image::Descriptor*>> entries;
        for (const image::Descriptor& entry : list.manifests) {
            const auto found = entry.platform ? image::distance(*entry.platform, platform_) : std::nullopt;
            entries.emplace_back(found.value_or(0), &entry);
        }
        std::stable_sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.first < b.first; });
        std::vector<const image::Descriptor*> result;
        for (const auto& entry : entries) result.push_back(entry.second);
        return result;
    }

    /// Depth first: the first match wins.
    std::optional<ResolvedImage> search(const FetchedManifest& index, std::uint64_t depth, Pass pass) {
        const Limits& limits = request_.limits;
        if (depth > limits.index_depth) {
            throw limit_error("the depth of nested indexes", "index_depth", limits.index_depth);
        }
        const image::Index list = image::decode_index(index.root);
        entries_ += list.manifests.size();
        if (entries_ > limits.index_entries * (static_cast<std::uint64_t>(pass) + 1)) {
            throw limit_error("the number of entries of the index", "index_entries", limits.index_entries);
        }
        for (const image::Descriptor* const each : nearest_first(list)) {
            const image::Descriptor& entry = *each;
            const bool nested = is_index_type(entry.media_type);
            const bool image =
                entry.media_type == image::k_oci_manifest || entry.media_type == image::k_docker_manifest;
            if (entry.platform) {
                offered_.insert(entry.platform->to_string());
            }
            const bool named = entry.platform.has_value() && !entry.platform->architecture.empty();
            if (named && !image::matches(*entry.platform, platform_)) {
                continue;
            }
            if (!nested && entry.needs_features != (pass == Pass::special)) {
                special_ = special_ || entry.needs_features;
                continue;
            }
            if (nested) {
                const FetchedManifest inner = fetch_child(entry);
                if (auto found = search(inner, depth + 1, pass)) {
                    note_text(*found, inner);
                    return found;
                }
            } else if (!image && named && unreadable_.empty()) {
                unreadable_ = entry.media_type;
            } else if (image && named == (pass != Pass::unnamed)) {
                const FetchedManifest child = fetch_child(entry);
                if (const std::string artifact = image::artifact_type(child.root); !named && !artifact.empty()) {
                    artifact_ = artifact_.empty() ? artifact
                                                  : artifact_;  // a signature or a bill of materials beside the images
                    continue;
                }
                ResolvedImage candidate = complete(child);
                offered_.insert(candidate.config.platform.to_string());
                if (image::matches(candidate.config.platform, platform_)) {
                    return candidate;
                }
                if (named) {
                    check_platform(candidate.config.platform);
                    return candidate;
                }
            }
        }
        return std::nullopt;
    }

    FetchedManifest fetch_child(const image::Descriptor& entry) {
        return fetch_manifest(store_, entry.digest.to_string(), entry.digest, &entry, request_, warnings_);
    }

    void note_text(ResolvedImage& image, const FetchedManifest& fetched) const {
        if (!request_.requirements.empty()) {
            image.manifests.push_back(fetched.text);
        }
    }

    ResolvedImage complete(const FetchedManifest& fetched) {
        ResolvedImage image;
        note_text(image, fetched);
        image.digest = fetched.digest;
        image.manifest = image::decode_manifest(fetched.root);
        image.config = image::decode_config(fetch_config(store_, image.manifest, request_, warnings_));
        return image;
    }

    /// Images that were put together from files (crane append, bazel) may say nothing of their platform.
    void check_platform(image::Platform found) const {
        found.os = found.os.empty() ? platform_.os : found.os;
        found.architecture = found.architecture.empty() ? platform_.architecture : found.architecture;
        if (!image::matches(found, platform_)) {
            if (request_.other_platform == OtherPlatform::warn) {
                warnings_.push_back(fmt::format("platform-mismatch: expected an image for {}, took one for {}",
                                                platform_.to_string(), base::escape(found.to_string())));
                return;
            }
            throw Error(
                Exit::data, "platform-mismatch",
                fmt::format("expected an image for {}, found one for {}", platform_.to_string(), found.to_string()))
                .hint(
                    "build the image for the nodes' architecture; if only its configuration is wrong: "
                    "kmm-worker takes it with --allow-platform-mismatch");
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
    std::string unreadable_;  ///< media type of an entry for our platform that is no image
    std::string artifact_;    ///< media type of the configuration of an entry that is no image, and says no platform
    std::uint64_t entries_ = 0;
    bool special_ = false;  ///< an entry for our platform was passed over
};

}  // namespace

FetchedManifest fetch_manifest(ImageStore& store, const std::string& name, const std::optional<image::Digest>& digest,
                               const image::Descriptor* said, const PullRequest& request,
                               std::vector<std::string>& warnings) {
    const std::uint64_t cap = request.limits.manifest_bytes;
    if (said != nullptr && said->size > cap) {
        throw limit_error("the size of the manifest", "manifest_bytes", cap);
    }
    ManifestText text = store.manifest(name, digest, cap);
    if (text.body.size() > cap) {
        throw limit_error("the size of the manifest", "manifest_bytes", cap);
    }
    if (said != nullptr && text.body.size() != said->size) {
        throw Error(Exit::integrity, "size-mismatch",
                    fmt::format("expected a manifest of {} bytes, found {}", said->size, text.body.size()))
            .detail("manifest", name);
    }
    FetchedManifest result;
    result.digest = verified_manifest(text.body, digest);
    const std::string announced = base::to_lower(text.announced_digest);
    if (announced != result.digest.to_string() && announced.starts_with("sha256:")) {
        warnings.push_back(fmt::format("content-digest: the registry announced {}, its bytes are {}",
                                       base::escape(announced.substr(0, 80)), result.digest.to_string()));
    }
    if (said == nullptr) {
        begin_other_bytes(request.parser);
    }
    result.root = read_image_document(request.parser, text.body, "manifest", "bad-manifest");
    if ((text.content_type.empty() || image::is_plain_type(text.content_type)) &&
        result.root.get_string({"mediaType"}).empty()) {
        if (said != nullptr) {
            text.content_type = said->media_type;
        } else if (text.of_file) {
            text.content_type = result.root.find("manifests") != nullptr ? image::k_oci_index : image::k_oci_manifest;
        }
    }
    result.kind = image::document_kind(result.root, text.content_type);
    if (said != nullptr && is_index_type(said->media_type) != (result.kind == image::DocumentKind::index)) {
        throw Error(Exit::data, "bad-manifest", "expected the media type that the index says, found another")
            .detail("manifest", name);
    }
    result.media_type = result.root.get_string({"mediaType"});
    if (result.media_type.empty()) {
        result.media_type =
            image::is_plain_type(text.content_type)
                ? std::string(result.kind == image::DocumentKind::index ? image::k_oci_index : image::k_oci_manifest)
                : base::to_lower(base::trim(text.content_type.substr(0, text.content_type.find(';'))));
    }
    result.text = std::move(text.body);
    return result;
}

value::Node fetch_config(ImageStore& store, const image::Manifest& manifest, const PullRequest& request,
                         std::vector<std::string>& warnings) {
    if (manifest.config.size > request.limits.config_bytes) {
        throw limit_error("the size of the image configuration", "config_bytes", request.limits.config_bytes);
    }
    TextTarget text;
    store.blob(manifest.config, text, warnings, nullptr);
    return read_image_document(request.parser, text.text(), "image configuration", "bad-manifest");
}

std::uint64_t check_layers(const image::Manifest& manifest, const image::ImageConfig& config, const Limits& limits) {
    if (manifest.layers.empty()) {
        throw Error(Exit::data, "bad-manifest",
                    "expected at least one layer with modules, found none: no .ko file is in this image");
    }
    if (manifest.layers.size() > limits.layers) {
        throw limit_error("the number of layers", "layers", limits.layers);
    }
    if (manifest.layers.size() != config.diff_ids.size()) {
        throw Error(Exit::data, "bad-manifest",
                    fmt::format("expected one diff id for each of {} layers, found {}", manifest.layers.size(),
                                config.diff_ids.size()));
    }
    std::uint64_t total = 0;
    for (const image::Descriptor& layer : manifest.layers) {
        static_cast<void>(image::layer_compression(layer));
        if (layer.size > limits.blob_bytes) {
            throw limit_error("the size of the layer " + layer.digest.short_text(), "blob_bytes", limits.blob_bytes);
        }
        total += layer.size;
        if (total > limits.image_bytes) {
            throw limit_error("the size of the image", "image_bytes", limits.image_bytes);
        }
    }
    return total;
}

ResolvedImage resolve_image(ImageStore& store, const PullRequest& request, std::vector<std::string>& warnings) {
    return Resolver(store, request, warnings).run();
}

}  // namespace kmm::registry
