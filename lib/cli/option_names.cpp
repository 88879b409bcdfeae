// SPDX-License-Identifier: Apache-2.0
// Written by tests/gendocs from the command trees.
#include <array>

#include "cli/parse.hpp"

namespace kmm::cli {

std::span<const std::string_view> all_option_names() noexcept {
    static constexpr std::array<std::string_view, 62> k_names = {
        "all",
        "authfile",
        "baseline",
        "ca-file",
        "cache-dir",
        "cache-size",
        "canary",
        "ci",
        "cluster",
        "color",
        "context",
        "dir-name",
        "dry-run",
        "fail-on",
        "filename",
        "firmware-host-path",
        "firmware-path",
        "host-root",
        "image",
        "image-firmware",
        "image-pull-policy",
        "in-tree-remove",
        "input-size",
        "insecure",
        "kernel",
        "kubeconfig",
        "kubernetes-version",
        "limit",
        "loading-order",
        "manual",
        "max-unavailable",
        "mirror-config",
        "module",
        "namespace",
        "next",
        "no-input",
        "node",
        "node-timeout",
        "order",
        "out",
        "output",
        "parameter",
        "pause-after",
        "platform",
        "pull-secrets",
        "quiet",
        "reason",
        "remove",
        "report",
        "rollback",
        "runner",
        "selector",
        "settle",
        "ssh-config",
        "state-dir",
        "timeout",
        "to",
        "verbose",
        "watch",
        "worker",
        "worker-image",
        "worker-style",
    };
    return k_names;
}

}  // namespace kmm::cli
