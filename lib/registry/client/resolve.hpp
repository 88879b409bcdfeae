// SPDX-License-Identifier: Apache-2.0
// From a reference to the manifest of one platform.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "image/manifest.hpp"
#include "registry/client/store.hpp"
#include "value/node.hpp"

namespace kmm::registry {

/// A manifest or an index, verified.
struct FetchedManifest {
    std::string text;
    value::Node root;
    image::DocumentKind kind = image::DocumentKind::manifest;
    std::string media_type;  ///< by which it was told what it is
    image::Digest digest;
};

/// Fetches the manifest `name`. `said` is what an index says about it, nullptr for the first one, which must have
/// `digest` if one is given; that one is read by a process that has read nothing else. Of `request` limits and parser
/// count. Errors: as resolve_image.
[[nodiscard]] FetchedManifest fetch_manifest(ImageStore& store, const std::string& name,
                                             const std::optional<image::Digest>& digest, const image::Descriptor* said,
                                             const PullRequest& request, std::vector<std::string>& warnings);

struct ResolvedImage {
    image::Manifest manifest;
    image::ImageConfig config;
    image::Digest digest;        ///< of the manifest's bytes
    std::string index_digest;    ///< of the outermost index, "" if there was none
    std::vector<std::string> manifests{};  ///< texts of the manifest and of the indexes around it, the innermost first;
                                           ///< empty unless asked for
};

/// Fetches the manifest, walks indexes to the first entry of the wanted platform, fetches and checks the configuration.
/// Errors: integrity "digest-mismatch", "size-mismatch"; data "bad-manifest", "unsupported-image", "platform-mismatch";
/// not_found "no-platform", "image-not-found"; unsafe "image-limit"; those of the store.
[[nodiscard]] ResolvedImage resolve_image(ImageStore& store, const PullRequest& request,
                                          std::vector<std::string>& warnings);

/// The configuration of `manifest`. Errors: as resolve_image.
[[nodiscard]] value::Node fetch_config(ImageStore& store, const image::Manifest& manifest, const PullRequest& request,
                                       std::vector<std::string>& warnings);

/// Everything that can be said about the layers before the first of them is fetched; returns the bytes of all together.
/// Errors: data "bad-manifest", "unsupported-image"; unsafe "image-limit".
[[nodiscard]] std::uint64_t check_layers(const image::Manifest& manifest, const image::ImageConfig& config,
                                         const Limits& limits);

}  // namespace kmm::registry
