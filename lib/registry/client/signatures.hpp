// SPDX-License-Identifier: Apache-2.0
// Whether an image meets what is required of it: signatures beside it in its repository.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "image/reference.hpp"
#include "registry/client/store.hpp"

namespace kmm::registry {

/// An image of a registry: its name, and the texts of its manifest and of the indexes it was taken from, the innermost
/// first.
struct RegistryImage {
    ImageStore& store;
    image::Reference name;
    std::vector<std::string> manifests;
};

/// Does nothing without request.requirements. Signatures are looked for under the tag of each manifest, where cosign
/// puts them, until the requirements are met: a signature of an index proves what is in it. `image` is nullptr for one
/// of a file, which has no signatures. Errors: integrity "image-rejected", "image-unsigned", "signature-format" (a
/// sigstore bundle is all there is), "signature-rejected"; config "policy-unsupported"; unsafe "image-limit"; those of
/// the store.
void require_trust(const RegistryImage* image, const PullRequest& request, std::vector<std::string>& warnings);
/// The same; without a name, for an image of a file.
void require_trust(ImageStore& store, const std::optional<image::Reference>& name,
                   const std::vector<std::string>& manifests, const PullRequest& request,
                   std::vector<std::string>& warnings);

}  // namespace kmm::registry
