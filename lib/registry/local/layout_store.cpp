// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "image/reference.hpp"
#include "registry/client/document_service.hpp"
#include "registry/layer/hash.hpp"
#include "registry/layer/source.hpp"
#include "registry/local/local.hpp"
#include "value/kind_phrase.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

namespace {

constexpr std::string_view k_ref_name = "org.opencontainers.image.ref.name";
constexpr std::string_view k_containerd_name = "io.containerd.image.name";

constexpr const char* k_elsewhere = "correct the name, or copy the image into it, as with skopeo copy";

Error bad_layout(std::string message) { return Error(Exit::data, "bad-layout", std::move(message)); }

/// What index.json offers: the descriptors, and the tag of each.
struct Offer {
    std::vector<image::Descriptor> descriptors;
    std::vector<std::string> tags, names;  ///< of each: the annotation of the specification, that of containerd
};

Offer read_offer(FileSet& files, const PullRequest& request) {
    const Limits& limits = request.limits;
    const auto marker = read_named(files, "oci-layout", limits.manifest_bytes);
    const auto text = read_named(files, "index.json", limits.manifest_bytes);
    if (!marker || !text) {
        throw bad_layout(
            fmt::format("expected an OCI image layout, found no file {}", marker ? "index.json" : "oci-layout"))
            .hint("docker save writes docker-archive:FILE; skopeo copy ... oci:DIR:TAG writes a layout");
    }
    const std::string version = read_image_document(request.parser, *marker, "file oci-layout", "bad-layout")
                                    .get_string({"imageLayoutVersion"});
    if (version != "1.0.0") {
        throw bad_layout(fmt::format("expected the image layout version 1.0.0, found \"{}\"", base::escape(version)));
    }
    const value::Node root = read_image_document(request.parser, *text, "file index.json", "bad-layout");
    with_context([] { return std::string("file index.json"); }, [&] {
        if (image::document_kind(root, "application/json") != image::DocumentKind::index) {
            throw bad_layout("expected an index, found the manifest of an image");
        }
    });
    Offer offer;
    offer.descriptors = image::decode_index(root).manifests;
    if (offer.descriptors.size() > limits.index_entries) {
        throw limit_error("the number of entries of the index", "index_entries", limits.index_entries);
    }
    for (const value::Node& item : root.find("manifests")->items()) {
        offer.tags.push_back(item.get_string({"annotations", k_ref_name}));
        offer.names.push_back(item.get_string({"annotations", k_containerd_name}));
    }
    return offer;
}

Error no_such_place(std::size_t place, std::size_t entries, std::string_view file) {
    return Error(Exit::not_found, "image-not-found",
                 fmt::format("expected an image at place {} of {}, found {} (counted from 0)", place, file,
                             entries == 1 ? "one entry" : fmt::format("{} entries", entries)))
        .hint(k_elsewhere);
}

/// True if both are the name of one image: podman writes "docker.io/library/driver:v1" for what docker calls
/// "driver:v1".
bool is_same_name(const std::string& name, const std::string& wanted) {
    try {
        return image::parse_reference(name).to_string() == image::parse_reference(wanted).to_string();
    } catch (const Error&) {
        return false;
    }
}

/// True if containerd and docker save call by `name`, which has a repository and a tag, what the user does.
bool is_whole_name(const std::string& name, const std::string& wanted) {
    return !name.empty() && wanted.find(':') != std::string::npos && is_same_name(name, wanted);
}

/// True if `name` ("v1" or "reg.example.com/team/driver:v1") is what the user calls `tag`.
bool is_tag(const std::string& name, const std::string& tag) { return name == tag || name.ends_with(":" + tag); }

std::string index_text(const std::vector<image::Descriptor>& descriptors) {
    value::Node manifests = value::Node::sequence();
    for (const image::Descriptor& d : descriptors) {
        value::Node one =
            value::Node::mapping({{"mediaType", d.media_type}, {"digest", d.digest.to_string()}, {"size", d.size}});
        if (d.platform) {
            value::Node platform =
                value::Node::mapping({{"os", d.platform->os}, {"architecture", d.platform->architecture}});
            if (!d.platform->variant.empty()) {
                platform.set("variant", d.platform->variant);
            }
            one.set("platform", std::move(platform));
        }
        manifests.push_back(std::move(one));
    }
    value::Node index =
        value::Node::mapping({{"schemaVersion", std::uint64_t{2}}, {"mediaType", std::string(image::k_oci_index)}});
    index.set("manifests", std::move(manifests));
    return value::to_json(index);
}

class LayoutStore final : public ImageStore {
public:
    LayoutStore(const LocalReference& reference, std::unique_ptr<FileSet> files, const PullRequest& request,
                std::function<void()> check_deadline)
        : files_(std::move(files)), check_deadline_(std::move(check_deadline)) {
        const Offer offer = read_offer(*files_, request);
        choose(offer, reference, request);
    }

    std::string first_name() const override { return first_ ? first_->to_string() : "index"; }
    std::optional<image::Digest> first_digest() const override { return first_; }
    void check_deadline() const override { check_deadline_(); }

    ManifestText manifest(const std::string& name, const std::optional<image::Digest>& expected,
                          std::uint64_t cap) override {
        if (!first_ && name == "index") {
            return {index_text(several_), std::string(image::k_oci_index), {}};
        }
        const auto digest = image::parse_digest(name);
        if (!digest) {
            throw bug("a layout was asked for a manifest without digest");
        }
        auto text = read_named(*files_, path_of(*digest), cap);
        if (!text) {
            throw Error(Exit::not_found, "image-not-found", "the layout has no " + path_of(*digest))
                .hint("copy the image again");
        }
        static_cast<void>(verified_manifest(*text, expected));
        const auto said =
            std::find_if(several_.begin(), several_.end(), [&](const auto& d) { return d.digest == *digest; });
        if (said != several_.end() && text->size() <= cap && said->size != text->size()) {
            throw Error(Exit::integrity, "size-mismatch",
                        fmt::format("expected a manifest of {} bytes, found {}", said->size, text->size()))
                .detail("manifest", name)
                .hint("the layout is damaged: copy the image again");
        }
        return {std::move(*text), said == several_.end() ? std::string() : said->media_type, {}, true};
    }

    void blob(const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& /*warnings*/,
              const ByteCount& on_bytes) override {
        const auto source = files_->open(path_of(wanted.digest));
        if (!source) {
            throw Error(Exit::not_found, "image-not-found",
                        "the layout has the manifest and not " + path_of(wanted.digest))
                .hint("copy the image again");
        }
        copy_verified(*source, wanted, target, on_bytes, check_deadline_);
    }

private:
    static std::string path_of(const image::Digest& digest) {
        return fmt::format("blobs/{}/{}", image::to_string(digest.algorithm), digest.hex);
    }

    void choose(const Offer& offer, const LocalReference& reference, const PullRequest& request) {
        if (reference.digest) {
            first_ = reference.digest;  // also one that only an index below mentions
        }
        if (reference.place && *reference.place >= offer.descriptors.size()) {
            throw no_such_place(*reference.place, offer.descriptors.size(), "index.json");
        }
        const bool exact = std::find(offer.tags.begin(), offer.tags.end(), reference.tag) != offer.tags.end();
        for (std::size_t i = 0; i < offer.descriptors.size(); ++i) {
            const std::string& name = offer.tags[i];
            const bool meant = reference.place    ? i == *reference.place
                               : reference.digest ? offer.descriptors[i].digest == *reference.digest
                                                : reference.tag.empty() || name == reference.tag ||
                                                      is_whole_name(offer.names[i], reference.tag) ||
                                                      (!exact && is_tag(name, reference.tag));
            if (meant && !holds_already(offer.descriptors[i])) {
                several_.push_back(offer.descriptors[i]);
            }
        }
        if (first_) {
            return;
        }
        if (several_.empty()) {
            throw Error(Exit::not_found, "image-not-found",
                        reference.tag.empty()
                            ? "the layout holds no image"
                            : fmt::format("expected the tag {} in the layout, found {}", base::escape(reference.tag),
                                          tags_of(offer, offer.descriptors)))
                .hint(k_elsewhere);
        }
        if (several_.size() > 1 && are_rivals()) {
            leave_out_artifacts(offer, request);
        }
        if (several_.size() == 1) {
            first_ = several_.front().digest;
        } else if (are_rivals()) {
            throw Error(Exit::data, "ambiguous-image",
                        fmt::format("expected one image, found {} in the layout: {}", several_.size(),
                                    tags_of(offer, several_)))
                .hint(reference.transport == Transport::oci
                          ? "name one: oci:DIR:TAG, oci:DIR@sha256:... or oci:DIR:@N by its place in index.json"
                          : "name one: oci-archive:FILE:TAG, oci-archive:FILE@sha256:... or oci-archive:FILE:@N by "
                            "its place in index.json");
        }
    }

    /// The tags under which `these` stand, sorted, for messages.
    static std::string tags_of(const Offer& offer, const std::vector<image::Descriptor>& these) {
        std::set<std::string> tags;
        for (std::size_t i = 0; i < offer.descriptors.size(); ++i) {
            const bool is_one = std::any_of(these.begin(), these.end(),
                                            [&](const auto& d) { return d.digest == offer.descriptors[i].digest; });
            const std::string& name = offer.names[i].empty() ? offer.tags[i] : offer.names[i];
            if (is_one && !name.empty()) {
                tags.insert(base::escape(name));
            }
        }
        return tags.empty() ? "none with a name" : base::join(std::vector<std::string>(tags.begin(), tags.end()), ", ");
    }

    /// Signatures and the like that stand beside an image are not what is meant.
    void leave_out_artifacts(const Offer& offer, const PullRequest& request) {
        std::vector<image::Descriptor> images = several_;
        std::erase_if(images, [&](const image::Descriptor& one) {
            const auto text = read_named(*files_, path_of(one.digest), request.limits.manifest_bytes);
            if (text) {
                static_cast<void>(verified_manifest(*text, one.digest));
            }
            return text && !image::artifact_type(read_image_document(request.parser, *text, "manifest", "bad-manifest"))
                                .empty();
        });
        if (images.empty()) {
            throw Error(Exit::not_found, "image-not-found",
                        "the layout holds no image, only other artifacts: " + tags_of(offer, several_))
                .hint(k_elsewhere);
        }
        several_ = std::move(images);
    }

    /// An image may stand there under several names.
    [[nodiscard]] bool holds_already(const image::Descriptor& one) const {
        return std::any_of(several_.begin(), several_.end(), [&](const auto& d) { return d.digest == one.digest; });
    }

    /// True unless they are one image for several platforms.
    [[nodiscard]] bool are_rivals() const {
        std::vector<image::Platform> platforms;
        return std::any_of(several_.begin(), several_.end(), [&](const auto& d) {
            if (!d.platform) {
                return true;
            }
            const bool known = std::any_of(platforms.begin(), platforms.end(),
                                           [&](const auto& other) { return image::distance(*d.platform, other) == 0; });
            platforms.push_back(*d.platform);
            return known && d.platform->os != "unknown";
        });
    }

    std::unique_ptr<FileSet> files_;
    std::function<void()> check_deadline_;
    std::optional<image::Digest> first_;
    std::vector<image::Descriptor> several_;  ///< images of several platforms under one name
};

/// One image of manifest.json.
struct SavedImage {
    std::string config;
    std::vector<std::string> names, layers;
};

std::vector<std::string> strings_of(const value::Node& node, std::string_view key) {
    std::vector<std::string> result;
    const value::Node* list = node.find(key);
    if (list != nullptr && !list->is_null()) {
        if (!list->is_sequence()) {
            throw bad_layout(
                fmt::format("manifest.json: {}: expected a list, found {}", key, value::a_kind(list->kind())));
        }
        for (const value::Node& item : list->items()) {
            if (!item.is_string()) {
                throw bad_layout(
                    fmt::format("manifest.json: {}: expected strings, found {}", key, value::a_kind(item.kind())));
            }
            result.push_back(item.text());
        }
    }
    return result;
}

SavedImage saved_image(FileSet& files, const LocalReference& reference, const PullRequest& request) {
    const auto text = read_named(files, "manifest.json", request.limits.manifest_bytes);
    if (!text) {
        throw bad_layout("expected an archive of docker save, found no file manifest.json")
            .hint("an OCI layout is read with oci-archive:FILE");
    }
    const value::Node root = read_image_document(request.parser, *text, "file manifest.json", "bad-layout");
    if (!root.is_sequence()) {
        throw bad_layout(
            fmt::format("manifest.json: expected a list of images, found {}", value::a_kind(root.kind())));
    }
    if (reference.place && *reference.place >= root.items().size()) {
        throw no_such_place(*reference.place, root.items().size(), "manifest.json");
    }
    std::vector<SavedImage> matches;
    std::vector<std::string> known;
    for (std::size_t i = 0; i < root.items().size(); ++i) {
        const value::Node& item = root.items()[i];
        image::expect_exact(item, {"Config", "RepoTags", "Layers"}, "manifest.json");
        SavedImage image{item.get_string({"Config"}), strings_of(item, "RepoTags"), strings_of(item, "Layers")};
        known.insert(known.end(), image.names.begin(), image.names.end());
        const bool named = std::any_of(image.names.begin(), image.names.end(), [&](const std::string& name) {
            return is_tag(name, reference.tag) || is_same_name(name, reference.tag);
        });
        if (reference.place ? i == *reference.place : reference.tag.empty() || named) {
            matches.push_back(std::move(image));
        }
    }
    const std::string shown = known.empty() ? "none with a name" : base::escape(base::join(known, ", "));
    if (matches.empty()) {
        throw Error(Exit::not_found, "image-not-found",
                    fmt::format("expected {} in the archive, found {}",
                                reference.tag.empty() ? "an image" : base::escape(reference.tag), shown))
            .hint(k_elsewhere);
    }
    if (matches.size() > 1) {
        throw Error(Exit::data, "ambiguous-image",
                    fmt::format("expected one image, found {} in the archive: {}", matches.size(), shown))
            .hint("name one: docker-archive:FILE:NAME:TAG, or docker-archive:FILE:@N by its place in manifest.json");
    }
    return std::move(matches.front());
}

class DockerArchiveStore final : public ImageStore {
public:
    DockerArchiveStore(const LocalReference& reference, std::unique_ptr<FileSet> files, const PullRequest& request,
                       std::function<void()> check_deadline)
        : files_(std::move(files)), check_deadline_(std::move(check_deadline)) {
        const Limits& limits = request.limits;
        const SavedImage saved = saved_image(*files_, reference, request);
        auto config = read_named(*files_, saved.config, limits.config_bytes);
        if (!config) {
            throw bad_layout("expected the image configuration in the archive, found no file " +
                             base::escape(saved.config));
        }
        config_digest_ = digest_of(*config);
        check_named_digest(saved.config);
        if (reference.digest) {
            static_cast<void>(verified_manifest(*config, reference.digest));
        }
        config_ = std::move(*config);
        if (saved.layers.size() > limits.layers) {
            throw limit_error("the number of layers", "layers", limits.layers);
        }
        std::string layers;
        for (const std::string& name : saved.layers) {
            layers += (layers.empty() ? "" : ",") + describe_layer(name, limits);
        }
        manifest_ = fmt::format(
            R"({{"schemaVersion":2,"mediaType":"{}","config":{{"mediaType":"{}","digest":"{}","size":{}}},"layers":[{}]}})",
            image::k_oci_manifest, image::k_oci_config, config_digest_.to_string(), config_.size(), layers);
    }

    std::string first_name() const override { return "manifest"; }
    std::optional<image::Digest> first_digest() const override { return std::nullopt; }
    std::optional<image::Digest> identity() const override { return config_digest_; }
    void check_deadline() const override { check_deadline_(); }

    ManifestText manifest(const std::string& /*name*/, const std::optional<image::Digest>& /*expected*/,
                          std::uint64_t /*cap*/) override {
        return {manifest_, {}, {}};
    }

    void blob(const image::Descriptor& wanted, BlobTarget& target, std::vector<std::string>& /*warnings*/,
              const ByteCount& on_bytes) override {
        if (wanted.digest == config_digest_) {
            target.put(config_);
            return;
        }
        const auto source = files_->open(names_.at(wanted.digest.to_string()));
        if (!source) {
            throw bug("a layer of the archive is gone");
        }
        copy_verified(*source, wanted, target, on_bytes, check_deadline_);
    }

private:
    /// "HEX.json" and "blobs/sha256/HEX" say which digest the configuration has.
    void check_named_digest(const std::string& name) const {
        std::string hex(name_of(name));
        if (hex.ends_with(".json")) {
            hex.resize(hex.size() - 5);
        }
        const auto named = image::parse_digest("sha256:" + hex);
        if (named && *named != config_digest_) {
            throw Error(Exit::integrity, "digest-mismatch",
                        "the image configuration in the archive is another than its name says")
                .detail("expected", named->to_string())
                .detail("found", config_digest_.to_string());
        }
    }

    std::string describe_layer(const std::string& name, const Limits& limits) {
        const auto source = files_->open(name);
        if (!source) {
            throw bad_layout("expected a layer in the archive, found no file " + base::escape(name));
        }
        Hasher hasher;
        std::uint64_t size = 0;
        std::string head;  // the first piece may be a single byte
        for (std::string_view piece = source->next(); !piece.empty(); piece = source->next()) {
            if (head.size() < k_magic_bytes) head += piece.substr(0, k_magic_bytes - head.size());
            hasher.update(piece);
            size += piece.size();
            if (size > limits.blob_bytes) {
                throw limit_error("the size of the layer " + base::escape(name), "blob_bytes", limits.blob_bytes);
            }
        }
        const auto compression = compression_of(head);
        const std::string_view suffix = compression == image::Compression::gzip   ? "+gzip"
                                        : compression == image::Compression::zstd ? "+zstd"
                                                                                  : "";
        const std::string digest = hasher.finish().to_string();
        names_[digest] = name;
        return fmt::format(R"({{"mediaType":"application/vnd.oci.image.layer.v1.tar{}","digest":"{}","size":{}}})",
                           suffix, digest, size);
    }

    std::unique_ptr<FileSet> files_;
    std::function<void()> check_deadline_;
    image::Digest config_digest_;
    std::string config_, manifest_;
    std::map<std::string, std::string> names_;  ///< digest of a layer -> its file
};

}  // namespace

std::unique_ptr<ImageStore> open_layout(const LocalReference& reference, std::unique_ptr<FileSet> files,
                                        const PullRequest& request, std::function<void()> check_deadline) {
    return std::make_unique<LayoutStore>(reference, std::move(files), request, std::move(check_deadline));
}

std::unique_ptr<ImageStore> open_docker_archive(const LocalReference& reference, std::unique_ptr<FileSet> files,
                                                const PullRequest& request, std::function<void()> check_deadline) {
    return std::make_unique<DockerArchiveStore>(reference, std::move(files), request, std::move(check_deadline));
}

}  // namespace kmm::registry
