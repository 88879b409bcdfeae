// SPDX-License-Identifier: Apache-2.0
#include "base/counted.hpp"

#include <fmt/format.h>

namespace kmm::base {

std::string counted(std::size_t number, std::string_view noun) {
    return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace kmm::base
