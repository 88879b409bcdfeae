// SPDX-License-Identifier: Apache-2.0
// Written by tests/gendocs from the command trees.
#include <array>

#include "cli/parse.hpp"

namespace kmm::cli {

std::span<const std::string_view> all_option_names() noexcept {
    static constexpr std::array<std::string_view, 33> k_names = {
        "authfile",
        "ca-file",
        "cluster",
        "color",
        "context",
        "dir-name",
        "filename",
        "firmware-host-path",
        "firmware-path",
        "host-root",
        "image",
        "image-firmware",
        "in-tree-remove",
        "insecure",
        "kernel",
        "kubeconfig",
        "limit",
        "loading-order",
        "module",
        "namespace",
        "next",
        "no-input",
        "node",
        "out",
        "output",
        "parameter",
        "platform",
        "quiet",
        "selector",
        "timeout",
        "verbose",
        "worker-image",
        "worker-style",
    };
    return k_names;
}

}  // namespace kmm::cli
