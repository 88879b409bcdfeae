// SPDX-License-Identifier: Apache-2.0
// Build and sign sections of a container and of one of its kernel mappings, merged. Source: KMM kernelmapper.go with
// internal/build and internal/sign helpers; facts: KMM 3.4.
#pragma once

#include <optional>

#include "api/types.hpp"

namespace kmm::plan {

/// Only one side set: that side. Both: the container's, with the mapping's dockerfileConfigMap if set, its buildArgs
/// overriding by name in place (others appended, sorted by name) and its secrets appended. The mapping's
/// baseImageRegistryTLS, kanikoParams and selector do not count, as in KMM.
[[nodiscard]] std::optional<api::Build> merge_build(const std::optional<api::Build>& container,
                                                    const std::optional<api::Build>& mapping);

/// Only one side set: that side. Both: the container's, with the mapping's unsignedImage, keySecret and certSecret if
/// set and its filesToSign appended. The mapping's unsignedImageRegistryTLS does not count, as in KMM.
[[nodiscard]] std::optional<api::Sign> merge_sign(const std::optional<api::Sign>& container,
                                                  const std::optional<api::Sign>& mapping);

}  // namespace kmm::plan
