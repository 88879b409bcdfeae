// SPDX-License-Identifier: Apache-2.0
// For which image a signature was made, compared with the image that is pulled. Source: containers/image,
// signature/policy_reference_match.go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/reference.hpp"

namespace kmm::trust {

/// An image's name as policies and signatures write it: fully expanded, Docker Hub is "docker.io", no tag is implied.
struct NamedImage {
    std::string name;    ///< "HOST[:PORT]/REPOSITORY"
    std::string tag;     ///< "" without one
    std::string digest;  ///< "sha256:…", "" without one

    /// NAME[:TAG][@DIGEST].
    [[nodiscard]] std::string to_string() const;
};

/// `text` in its fully expanded form; nullopt if it is not an image name.
[[nodiscard]] std::optional<NamedImage> named_image(std::string_view text);

/// The name that `reference` is judged by. The digest of a reference with tag and digest decides what is pulled: the
/// tag is left out, as podman does.
[[nodiscard]] NamedImage named_image(const image::Reference& reference);

/// signedIdentity of a policy.
struct SignedIdentity {
    enum class Match { exact, repo_digest_or_exact, repository, exact_reference, exact_repository, remap };
    Match match = Match::repo_digest_or_exact;
    std::string reference;              ///< dockerReference or dockerRepository
    std::string prefix, signed_prefix;  ///< of remapIdentity

    /// True if a signature for the image called `claimed` is good for `intended`; nullopt is an image without a name,
    /// as of a file: only exactReference and exactRepository can accept signatures of one.
    [[nodiscard]] bool accepts(const std::optional<NamedImage>& intended, std::string_view claimed) const;
};

/// True if `text` is a prefix that remapIdentity takes: HOST[:PORT] or HOST[:PORT]/PATH, without tag and digest.
[[nodiscard]] bool is_identity_prefix(std::string_view text);

/// Scopes of a policy that an image falls under, the most specific first: its own name, repository, namespaces, host,
/// "*.DOMAIN". HOST and HOST:443 are one registry: both are among them, the one that the image has first.
[[nodiscard]] std::vector<std::string> scopes_of(const NamedImage& image);

/// The same for an image in a directory or archive at `path`, absolute, without links: the path and the directories
/// above it, without "/".
[[nodiscard]] std::vector<std::string> scopes_of_path(std::string_view path);

/// True if an image of a registry can fall under `scope`, one that is not empty.
[[nodiscard]] bool is_image_scope(std::string_view scope);

/// The scope that is probably meant by one no image can fall under: "team/x" is "docker.io/team/x", "HOST/team/*" is
/// "HOST/team"; nullopt if that cannot be said.
[[nodiscard]] std::optional<std::string> probable_image_scope(std::string_view scope);

}  // namespace kmm::trust
