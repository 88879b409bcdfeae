// SPDX-License-Identifier: Apache-2.0
// Image references: "registry.example.com:5000/team/driver:6.1.0" and its short forms.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "image/digest.hpp"

namespace kmm::image {

/// A parsed reference. With both a tag and a digest the digest decides what is pulled.
struct Reference {
    std::string registry;    ///< host, host:port or [v6]:port; Docker Hub is "index.docker.io"
    std::string repository;  ///< "team/driver"; Docker Hub's official images get "library/"
    std::string tag;         ///< "" if only a digest was given; "latest" if neither was
    std::optional<Digest> digest;

    /// registry/repository.
    [[nodiscard]] std::string name() const;
    /// registry/repository[:tag][@digest].
    [[nodiscard]] std::string to_string() const;
    /// What the registry's manifest endpoint is asked for: the digest if there is one, else the tag.
    [[nodiscard]] std::string manifest_name() const;
    friend bool operator==(const Reference&, const Reference&) = default;
};

/// Parses a reference as Docker and go-containerregistry do: the first component is a registry if it holds a dot or a
/// colon, is "localhost", or starts with "["; otherwise Docker Hub is meant.
/// Errors: data "bad-reference", with the byte column in the message and details "text" and "here" (a caret below the
/// offending byte).
[[nodiscard]] Reference parse_reference(std::string_view text);

}  // namespace kmm::image
