// SPDX-License-Identifier: Apache-2.0
// Manifests, indexes and image configurations: OCI image-spec 1.1 and Docker schema 2, decoded with every check.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/digest.hpp"
#include "image/platform.hpp"
#include "value/node.hpp"

namespace kmm::image {

inline constexpr std::string_view k_oci_index = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view k_oci_manifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view k_oci_config = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view k_docker_list = "application/vnd.docker.distribution.manifest.list.v2+json";
inline constexpr std::string_view k_docker_manifest = "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view k_docker_config = "application/vnd.docker.container.image.v1+json";

/// Where what answered is plainly not the registry.
inline constexpr const char* k_other_server_hint =
    "a proxy, a login page or another server answers in the place of the registry: look at the address with a browser";

/// The value of the Accept header of a manifest request: the four types above that are manifests, nothing else.
[[nodiscard]] std::string manifest_accept_header();

/// A reference to content. `urls`, `annotations` and `data` of the specification are deliberately not kept: they are
/// never followed and never trusted.
struct Descriptor {
    std::string media_type;
    Digest digest;
    std::uint64_t size = 0;  ///< bytes, at most 2^63-1
    std::optional<Platform> platform;
    bool needs_features = false;  ///< its platform has os.features, as an image of nydus: for runtimes that have them
};

enum class DocumentKind { index, manifest };

struct Index {
    std::string media_type;
    std::vector<Descriptor> manifests;  ///< in document order: the first match wins
};

struct Manifest {
    std::string media_type;
    Descriptor config;
    std::vector<Descriptor> layers;  ///< lowest first
};

struct ImageConfig {
    Platform platform;
    std::vector<Digest> diff_ids;  ///< digests of the uncompressed layers, in the order of the layers
};

enum class Compression { none, gzip, zstd };

/// "plain", "gzip" or "zstd".
[[nodiscard]] std::string_view to_string(Compression compression) noexcept;

/// True for types that say nothing about a document, as servers of plain files give them: application/json, text/plain
/// and the like.
[[nodiscard]] bool is_plain_type(std::string_view content_type);

/// Refuses a member that readers in Go (docker, containerd, podman) take for one of `known` and we do not, being
/// written in another case: the same image would be two. Errors: data "bad-manifest", with `where` in it.
void expect_exact(const value::Node& node, std::initializer_list<std::string_view> known, const std::string& where);

/// What a manifest document is. `content_type` is the response header (parameters are ignored; "" if absent). With a
/// plain one the document's own mediaType counts, and without that its members. Errors: data "bad-manifest" if the
/// header, the mediaType field and the members do not agree (CVE-2021-41190); data "unsupported-image" for Docker
/// schema 1 and for anything that is not an image.
[[nodiscard]] DocumentKind document_kind(const value::Node& root, std::string_view content_type);

/// Decode one document. Errors: data "bad-manifest" naming the member; data "unsupported-image" where said below.
[[nodiscard]] Index decode_index(const value::Node& root);
/// The media type of what a manifest that is no container image holds (a signature, a Helm chart): of its
/// configuration, or, where that calls itself an image's, of its content, none of which is a layer. "" for an image,
/// and for what says none.
[[nodiscard]] std::string artifact_type(const value::Node& root);
/// Also "unsupported-image" if the configuration is not an image configuration (Helm charts and other artifacts).
[[nodiscard]] Manifest decode_manifest(const value::Node& root);
[[nodiscard]] ImageConfig decode_config(const value::Node& root);

/// How a layer is compressed, by its media type alone. Errors: data "unsupported-image" for non-distributable
/// (foreign), encrypted and unknown layer types.
[[nodiscard]] Compression layer_compression(const Descriptor& layer);

}  // namespace kmm::image
