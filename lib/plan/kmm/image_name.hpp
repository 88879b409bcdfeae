// SPDX-License-Identifier: Apache-2.0
// Names of images, as the API takes any text for one: which can be pulled at all, and which are of one image.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"

namespace kmm::plan {

/// What is wrong with `text` as an image's name, its template expanded; nullopt if a registry can have it. A warning
/// "bad-reference" without a place; a password that stands in the name is left out of the message.
[[nodiscard]] std::optional<Diagnostic> image_name_fault(const std::string& text);

/// `text` as every name of the same image is written: "drv" and "docker.io/library/drv:latest" are one. The text
/// itself if no registry can have it.
[[nodiscard]] std::string canonical_image(const std::string& text);

}  // namespace kmm::plan
