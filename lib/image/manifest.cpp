// SPDX-License-Identifier: Apache-2.0
#include "image/manifest.hpp"

#include <iterator>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "value/kind_phrase.hpp"

namespace kmm::image {

namespace {

using value::Node;

constexpr std::size_t k_shown_max = 80;

std::string shown(std::string_view text) {
    return "\"" + base::escape(text.substr(0, k_shown_max)) + (text.size() > k_shown_max ? "…" : "") + "\"";
}

Error bad(const std::string& where, const std::string& what) {
    return Error(Exit::data, "bad-manifest", where.empty() ? what : where + ": " + what);
}

/// `key` as Go's encoding/json compares members: without case, and with the two letters outside ASCII that fold into
/// it.
std::string folded(std::string_view key) {
    std::string text(key);
    for (const auto& [letter, plain] : {std::pair<std::string_view, char>{"\xc5\xbf", 's'}, {"\xe2\x84\xaa", 'k'}}) {
        for (std::size_t at = text.find(letter); at != std::string::npos; at = text.find(letter, at))
            text.replace(at, letter.size(), 1, plain);
    }
    return base::to_lower(text);
}

Error unsupported(std::string message, std::string hint) {
    return Error(Exit::data, "unsupported-image", std::move(message)).hint(std::move(hint));
}

const Node& member(const Node& parent, std::string_view key, const std::string& where) {
    const Node* found = parent.find(key);
    if (found == nullptr || found->is_null()) {
        throw bad(where, fmt::format("expected the member {}, found none", key));
    }
    return *found;
}

void expect_mapping(const Node& node, const std::string& where) {
    if (!node.is_mapping()) {
        throw bad(where, fmt::format("expected a mapping, found {}", value::a_kind(node.kind())));
    }
}

const Node& list_member(const Node& parent, std::string_view key, const std::string& where) {
    const Node& found = member(parent, key, where);
    if (!found.is_sequence()) {
        throw bad(where, fmt::format("{}: expected a list, found {}", key, value::a_kind(found.kind())));
    }
    return found;
}

/// A string member; "" if it is absent.
std::string optional_string(const Node& parent, std::string_view key, const std::string& where) {
    const Node* found = parent.find(key);
    if (found == nullptr || found->is_null()) {
        return {};
    }
    if (!found->is_string()) {
        throw bad(where, fmt::format("{}: expected a string, found {}", key, value::a_kind(found->kind())));
    }
    return found->text();
}

Digest digest_of(const Node& node, const std::string& where) {
    const auto digest = node.is_string() ? parse_digest(node.text()) : std::nullopt;
    if (!digest) {
        throw bad(where, fmt::format("expected sha256: or sha512: and lower-case hexadecimal digits, found {}",
                                     shown(node.text())));
    }
    return *digest;
}

Platform platform_of(const Node& node, const std::string& where) {
    expect_mapping(node, where);
    expect_exact(node, {"os", "architecture", "variant", "os.features"}, where);
    return Platform{optional_string(node, "os", where), optional_string(node, "architecture", where),
                    optional_string(node, "variant", where)};
}

Descriptor descriptor_of(const Node& node, const std::string& where) {
    expect_mapping(node, where);
    expect_exact(node, {"mediaType", "digest", "size", "platform", "data"}, where);
    Descriptor result;
    result.media_type = optional_string(node, "mediaType", where);
    if (result.media_type.empty()) {
        throw bad(where, "expected the member mediaType, found none");
    }
    result.digest = digest_of(member(node, "digest", where), where + ".digest");
    const Node& size = member(node, "size", where);
    const auto bytes = size.kind() == value::Kind::integer ? size.as_uint() : std::nullopt;
    if (!bytes || *bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw bad(where + ".size", fmt::format("expected a whole number of bytes, found {}", shown(size.text())));
    }
    result.size = *bytes;
    if (const Node* platform = node.find("platform"); platform != nullptr && !platform->is_null()) {
        result.platform = platform_of(*platform, where + ".platform");
        const Node* features = platform->find("os.features");
        if (features != nullptr && !features->is_null()) {
            result.needs_features = !list_member(*platform, "os.features", where + ".platform").items().empty();
        }
    }
    return result;
}

/// "CODE: message" of the first entry of an error document that stands in the place of a manifest.
[[nodiscard]] std::string first_error(const Node& errors) {
    if (errors.items().empty() || !errors.items().front().is_mapping()) return {};
    const Node& first = errors.items().front();
    const Node* code = first.find("code") != nullptr ? first.find("code") : first.find("status");
    const std::string message = first.get_string({"message"});
    const std::string number = code == nullptr || code->is_mapping() ? "" : code->text();
    return number + (number.empty() || message.empty() ? "" : ": ") + message;
}

void expect_schema_2(const Node& root) {
    const Node* version = root.find("schemaVersion");
    if (const Node* errors = root.find("errors"); version == nullptr && errors != nullptr) {
        throw bad("", fmt::format("expected a manifest, found an error document {}", shown(first_error(*errors))))
            .hint(k_other_server_hint);
    }
    if (version != nullptr && version->as_int() == 1) {
        throw unsupported("expected a schema 2 manifest, found the obsolete Docker schema 1",
                          "rebuild the image with a current tool, or convert it with skopeo copy --format v2s2");
    }
    if (version == nullptr || version->as_int() != 2) {
        throw bad("schemaVersion", "expected 2");
    }
}

}  // namespace

void expect_exact(const Node& node, std::initializer_list<std::string_view> known, const std::string& where) {
    for (const value::Member& member : node.members()) {
        const std::string plain = folded(member.key);
        const auto* const fit =
            std::find_if(known.begin(), known.end(), [&](std::string_view name) { return folded(name) == plain; });
        if (fit != known.end() && member.key != *fit) {
            throw bad(where, fmt::format("expected the member {}, found {}", *fit, shown(member.key)))
                .hint(
                    "readers differ in whether that is the same member: build the image again with a container build "
                    "tool");
        }
    }
}

std::string manifest_accept_header() {
    return fmt::format("{}, {}, {}, {}", k_oci_index, k_docker_list, k_oci_manifest, k_docker_manifest);
}

std::string_view to_string(Compression compression) noexcept {
    switch (compression) {
        case Compression::gzip: return "gzip";
        case Compression::zstd: return "zstd";
        case Compression::none: break;
    }
    return "plain";
}

bool is_plain_type(std::string_view content_type) {
    static constexpr std::string_view types[] = {"application/json", "text/json", "text/plain",
                                                 "application/octet-stream", "binary/octet-stream"};
    const std::string type = base::to_lower(base::trim(content_type.substr(0, content_type.find(';'))));
    return std::find(std::begin(types), std::end(types), type) != std::end(types);
}

DocumentKind document_kind(const Node& root, std::string_view content_type) {
    expect_mapping(root, "manifest");
    expect_exact(root, {"schemaVersion", "mediaType", "manifests", "config", "layers", "fsLayers", "history"},
                 "manifest");
    const std::string header = base::to_lower(base::trim(content_type.substr(0, content_type.find(';'))));
    if (header.find("manifest.v1") != std::string::npos && header.find("docker") != std::string::npos) {
        throw unsupported("expected a schema 2 manifest, found the obsolete Docker schema 1",
                          "rebuild the image with a current tool, or convert it with skopeo copy --format v2s2");
    }
    expect_schema_2(root);
    const std::string field = optional_string(root, "mediaType", "manifest");
    const bool is_plain = is_plain_type(header);
    if (!header.empty() && !is_plain && !header.starts_with("application/vnd.")) {
        throw unsupported(fmt::format("expected a manifest with a media type of manifests, found the content type {}",
                                      shown(header)),
                          "the registry, or a proxy before it, sends the wrong Content-Type: correct it there");
    }
    if (!field.empty() && !header.empty() && !is_plain && base::to_lower(field) != header) {
        throw bad("mediaType", fmt::format("expected the response's content type {}, found {}", shown(header),
                                           shown(field)));
    }
    const bool has_manifests = root.find("manifests") != nullptr;
    const bool has_layers = root.find("layers") != nullptr || root.find("config") != nullptr;
    if (has_manifests && has_layers) {
        throw bad("manifest", "expected either manifests or config and layers, found both");
    }
    for (const char* const of_schema_1 : {"fsLayers", "history"}) {
        if (const Node* found = root.find(of_schema_1); found != nullptr && !found->is_null()) {
            throw bad("manifest", fmt::format("expected no {} in a schema 2 manifest, found it", of_schema_1))
                .hint("readers differ in which layers are meant: build the image again with a container build tool");
        }
    }
    std::string type = header.empty() || is_plain ? field : header;
    if (type.empty() && is_plain && has_manifests != has_layers) {  // the specification lets the member away
        type = has_manifests ? k_oci_index : k_oci_manifest;
    }
    if (type == k_oci_index || type == k_docker_list) {
        if (has_layers) {
            throw bad("manifest", fmt::format("expected an index as {} says, found layers", shown(type)));
        }
        return DocumentKind::index;
    }
    if (type == k_oci_manifest || type == k_docker_manifest) {
        if (has_manifests) {
            throw bad("manifest", fmt::format("expected an image manifest as {} says, found an index", shown(type)));
        }
        return DocumentKind::manifest;
    }
    if (type.empty()) {
        throw bad("mediaType", "expected a media type in the response or the document, found none");
    }
    throw unsupported(fmt::format("expected an image manifest or index, found media type {}", shown(type)),
                      "is the reference that of a container image?");
}

Index decode_index(const Node& root) {
    Index result;
    result.media_type = optional_string(root, "mediaType", "index");
    const Node& manifests = list_member(root, "manifests", "index");
    result.manifests.reserve(manifests.items().size());
    for (std::size_t i = 0; i < manifests.items().size(); ++i) {
        result.manifests.push_back(descriptor_of(manifests.items()[i], fmt::format("manifests[{}]", i)));
    }
    return result;
}

std::string artifact_type(const Node& root) {
    const std::string type = root.get_string({"config", "mediaType"});
    if (type != k_oci_config && type != k_docker_config) {
        return type;
    }
    const Node* layers = root.find("layers");
    if (layers == nullptr || layers->items().empty()) {
        return {};
    }
    const auto type_of = [](const Node& layer) { return layer.get_string({"mediaType"}); };
    const auto is_layer = [&](const Node& layer) {
        return type_of(layer).starts_with("application/vnd.oci.image.layer.") ||
               type_of(layer).starts_with("application/vnd.docker.image.rootfs.");
    };
    const auto& items = layers->items();
    return std::any_of(items.begin(), items.end(), is_layer) ? std::string() : type_of(items.front());
}

Manifest decode_manifest(const Node& root) {
    Manifest result;
    result.media_type = optional_string(root, "mediaType", "manifest");
    result.config = descriptor_of(member(root, "config", "manifest"), "config");
    if (result.config.media_type != k_oci_config && result.config.media_type != k_docker_config) {
        throw unsupported(fmt::format("expected an image configuration, found media type {}",
                                      shown(result.config.media_type)),
                          "the reference names an artifact (for example a Helm chart), not a container image");
    }
    const Node& layers = list_member(root, "layers", "manifest");
    result.layers.reserve(layers.items().size());
    for (std::size_t i = 0; i < layers.items().size(); ++i) {
        result.layers.push_back(descriptor_of(layers.items()[i], fmt::format("layers[{}]", i)));
    }
    return result;
}

ImageConfig decode_config(const Node& root) {
    expect_mapping(root, "image configuration");
    ImageConfig result;
    result.platform = platform_of(root, "image configuration");
    expect_exact(root, {"rootfs"}, "image configuration");
    const Node& rootfs = member(root, "rootfs", "image configuration");
    expect_mapping(rootfs, "rootfs");
    expect_exact(rootfs, {"type", "diff_ids"}, "rootfs");
    if (optional_string(rootfs, "type", "rootfs") != "layers") {
        throw bad("rootfs.type", "expected \"layers\"");
    }
    const Node* ids = rootfs.find("diff_ids");
    if (ids != nullptr && !ids->is_null()) {
        const Node& list = list_member(rootfs, "diff_ids", "rootfs");
        for (std::size_t i = 0; i < list.items().size(); ++i) {
            result.diff_ids.push_back(digest_of(list.items()[i], fmt::format("rootfs.diff_ids[{}]", i)));
        }
    }
    return result;
}

Compression layer_compression(const Descriptor& layer) {
    struct Row {
        std::string_view type;
        Compression compression;
    };
    static constexpr std::array<Row, 6> k_known{{
        {"application/vnd.oci.image.layer.v1.tar", Compression::none},
        {"application/vnd.oci.image.layer.v1.tar+gzip", Compression::gzip},
        {"application/vnd.oci.image.layer.v1.tar+zstd", Compression::zstd},
        {"application/vnd.docker.image.rootfs.diff.tar", Compression::none},
        {"application/vnd.docker.image.rootfs.diff.tar.gzip", Compression::gzip},
        {"application/vnd.docker.image.rootfs.diff.tar.zstd", Compression::zstd},
    }};
    for (const Row& row : k_known) {
        if (row.type == layer.media_type) {
            return row.compression;
        }
    }
    if (layer.media_type.find("nondistributable") != std::string::npos ||
        layer.media_type.find("foreign") != std::string::npos) {
        throw unsupported("expected a layer held by the registry, found a foreign layer " + shown(layer.media_type),
                          "foreign layers are never fetched from the addresses that an image names: rebuild the "
                          "image with its layers in the registry");
    }
    if (layer.media_type.ends_with("+encrypted")) {
        throw unsupported("expected a readable layer, found an encrypted one " + shown(layer.media_type),
                          "decrypt the image before it is pushed to the registry of the nodes");
    }
    throw unsupported("expected a tar layer (plain, gzip or zstd), found media type " + shown(layer.media_type),
                      "rebuild the image with a container build tool");
}

}  // namespace kmm::image
