// SPDX-License-Identifier: Apache-2.0
// Written by tests/gendocs from the command trees.
#include <array>

#include "cli/parse.hpp"

namespace kmm::cli {

std::span<const std::string_view> all_option_names() noexcept {
    static constexpr std::array<std::string_view, 61> k_names = {
        "authfile",
        "baseline",
        "ca-file",
        "canary",
        "ci",
        "cluster",
        "color",
        "context",
        "dir-name",
        "dry-run",
        "expect",
        "fail-on",
        "filename",
        "firmware-host-path",
        "firmware-path",
        "host-root",
        "i-understand-this-taints",
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
        "policy",
        "quiet",
        "reason",
        "report",
        "restore-in-tree",
        "rollback",
        "runner",
        "selector",
        "settle",
        "ssh-config",
        "state-dir",
        "timeout",
        "to",
        "verbose",
        "verify-after",
        "wait",
        "watch",
        "worker",
        "worker-image",
        "worker-style",
    };
    return k_names;
}

}  // namespace kmm::cli
