// SPDX-License-Identifier: Apache-2.0
// Written by tests/gendocs from the command trees.
#include <array>

#include "cli/parse.hpp"

namespace kmm::cli {

std::span<const std::string_view> all_option_names() noexcept {
    static constexpr std::array<std::string_view, 61> k_names = {
        "authfile",
        "baseline",
        "build-image",
        "ca-file",
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
        "missing",
        "module",
        "namespace",
        "next",
        "no-finalizers",
        "no-input",
        "node",
        "node-timeout",
        "operator-config",
        "order",
        "out",
        "output",
        "parameter",
        "pause-after",
        "platform",
        "prune",
        "quiet",
        "reason",
        "report",
        "rollback",
        "runner",
        "selector",
        "settle",
        "sign-image",
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
