// SPDX-License-Identifier: Apache-2.0
// Written by tests/gendocs from the command trees.
#include <array>

#include "cli/parse.hpp"

namespace kmm::cli {

std::span<const std::string_view> all_option_names() noexcept {
    static constexpr std::array<std::string_view, 22> k_names = {
        "authfile",
        "ca-file",
        "color",
        "dir-name",
        "firmware-path",
        "host-root",
        "image",
        "image-firmware",
        "in-tree-remove",
        "insecure",
        "kernel",
        "limit",
        "loading-order",
        "module",
        "no-input",
        "out",
        "output",
        "parameter",
        "platform",
        "quiet",
        "timeout",
        "verbose",
    };
    return k_names;
}

}  // namespace kmm::cli
