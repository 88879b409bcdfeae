// SPDX-License-Identifier: Apache-2.0
// The labels of the Pods by which KMM pulls, builds and signs images.
#pragma once

#include <string_view>

namespace kmm::api {

/// Of pull Pods.
inline constexpr std::string_view k_label_image_owner = "kmm.node.kubernetes.io/image-owner";
/// Of build and sign Pods.
inline constexpr std::string_view k_label_resource_type = "kmm.node.kubernetes.io/resource-type";

}  // namespace kmm::api
