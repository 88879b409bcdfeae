// SPDX-License-Identifier: Apache-2.0
// Names of images, as kubeadm, the runtime and people write them.
#pragma once

#include <string>
#include <string_view>

namespace kmm::kubernetes {

/// The name that a runtime gives an image: "team/kube-apiserver:v1.35.4" is docker.io/team/kube-apiserver:v1.35.4,
/// "busybox" is docker.io/library/busybox. A first part with a dot or a port, and localhost, is a registry.
[[nodiscard]] inline std::string full_image_name(std::string_view name) {
    const auto slash = name.find('/');
    const auto first = name.substr(0, slash);
    if (slash == std::string_view::npos) { return "docker.io/library/" + std::string(name); }
    const bool is_registry = first.find_first_of(".:") != std::string_view::npos || first == "localhost";
    return is_registry ? std::string(name) : "docker.io/" + std::string(name);
}

}  // namespace kmm::kubernetes
