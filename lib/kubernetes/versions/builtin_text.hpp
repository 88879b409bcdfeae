// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace kmm::kubernetes {

/// The text of manifests/kubernetes-versions.yaml.
extern const std::string_view k_builtin_versions;

}  // namespace kmm::kubernetes
