// SPDX-License-Identifier: Apache-2.0
// From a reference to the manifest of one platform.
#pragma once

#include <string>
#include <vector>

#include "image/manifest.hpp"
#include "registry/store.hpp"

namespace kmm::registry {

struct ResolvedImage {
    image::Manifest manifest;
    image::ImageConfig config;
    image::Digest digest;        ///< of the manifest's bytes
    std::string index_digest;    ///< of the outermost index, "" if there was none
};

/// Fetches the manifest, walks indexes to the first entry of the wanted platform, fetches and checks the configuration.
/// Errors: integrity "digest-mismatch", "size-mismatch"; data "bad-manifest", "unsupported-image", "platform-mismatch";
/// not_found "no-platform", "image-not-found"; unsafe "image-limit"; those of the store.
[[nodiscard]] ResolvedImage resolve_image(ImageStore& store, const PullRequest& request,
                                          std::vector<std::string>& warnings);

}  // namespace kmm::registry
