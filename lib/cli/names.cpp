// SPDX-License-Identifier: Apache-2.0
#include "cli/names.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"

namespace kmm::cli {

std::string_view plain_name(std::string_view name) {
    const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (is_plain || base::printable(name) == name) { return name; }
    throw Error(Exit::data, "bad-value",
                fmt::format("expected a name, found control or invisible characters in it: {}", base::escape(name)))
        .hint("-o json prints it in quotes");
}

}  // namespace kmm::cli
