// SPDX-License-Identifier: Apache-2.0
#include "base/join_some.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::base {

std::string join_some(std::span<const std::string> names, std::size_t most) {
    if (names.size() <= most) return join(names, ", ");
    return fmt::format("{} and {} more", join(names.first(most), ", "), names.size() - most);
}

}  // namespace kmm::base
