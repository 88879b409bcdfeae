// SPDX-License-Identifier: Apache-2.0
// Written by tests/gendocs from the command trees.
#include <array>

#include "cli/parse.hpp"

namespace kmm::cli {

std::span<const std::string_view> all_option_names() noexcept {
    static constexpr std::array<std::string_view, 3> k_names = {
        "cluster",
        "ssh-config",
        "state-dir",
    };
    return k_names;
}

}  // namespace kmm::cli
